import { PARAGRAPH } from './quoted-reply.ts';

/**
 * Finds the failed recipients in a notice without machine-readable fields, and the explanation of each. Servers use few
 * forms: the address alone on a line, or before a colon and the reason; a label before the address; an address in the
 * quoted SMTP reply; or a sentence.
 */
export interface NoticeEntry {
  recipient: string;
  /** The explanation in the notice, its lines joined by spaces; may be ''. */
  text: string;
  /** Only mentioned in a sentence: counts when there is no other entry. */
  isWeak: boolean;
}

const ADDRESS = String.raw`[^\s<>()[\]:;,"'@]{1,100}@[^\s<>()[\]:;,"'@]{1,255}`;

/** Leading decoration: quotation marks, bullets, `>>>`, brackets. */
const LEAD = String.raw`^[\s>*"'<([-]{0,40}(?:@[^\s<>()@:]{1,255}(?:,@[^\s<>()@:]{1,255}){0,9}:)?`;

const FORMS: readonly { pattern: RegExp; isWeak: boolean; keepsLine?: true }[] = [
  // `<a@example.com>`, `  a@example.com`, `"a@example.com":`, `* a@example.com`, `>>> a@x <a@x>`
  {
    pattern: new RegExp(`${LEAD}(${ADDRESS})["'>)\\s]{0,10}(?:<${ADDRESS}>)?[\\s:.,;]{0,10}$`),
    isWeak: false,
  },
  // `<a@example.com>: reason`, `a@example.com: reason`
  { pattern: new RegExp(`${LEAD}(${ADDRESS})["'>)]{0,3}\\s?:\\s([^]*)$`), isWeak: false },
  // `a@example.com [User unknown]`, `<a@example.com> (reason)`
  { pattern: new RegExp(`${LEAD}(${ADDRESS})["'>)]{0,3}\\s{1,5}([[(][^]*)$`), isWeak: false },
  // `a@example.com on Thu, 29 Apr 2010`, `a@example.com Error, ERROR_CODE :421`
  {
    pattern: new RegExp(
      `^\\s{0,20}<?(${ADDRESS})>?\\s{1,5}((?:on|invalid|error|failed|rejected|was|is|could|does|has|-)\\b[^]*)$`,
      'i',
    ),
    isWeak: false,
  },
  // `554 <a@example.com>... Host unknown`
  {
    pattern: new RegExp(`^[45]\\d\\d[ -](?:[45]\\.\\d\\.\\d{1,2} )?<(${ADDRESS})>\\s?(?:\\.\\.\\.|:)[^]*$`),
    isWeak: false,
    keepsLine: true,
  },
  // `Recipient: <a@example.com>`, `>>> RCPT To:<a@example.com>`, `Address: <a@example.com>, ResponseCode 421`
  {
    pattern: new RegExp(
      `(?:^|[\\s,[(])(?:(?:failed |final |original |intended )?recipients?(?: address| name)?|addressed to|rcpt to|address|failed address|unknown user|undeliverable to|user|destination)\\s{0,3}:?\\s{0,5}["'<]{0,2}(${ADDRESS})`,
      'i',
    ),
    isWeak: false,
    keepsLine: true,
  },
  // `There was an error delivering your mail to <a@example.com>.`
  {
    pattern: new RegExp(
      `\\b(?:deliver|delivered|delivering|delivery|undeliverable|mail|message|sent|send|rejected|reached?|reaching)\\b[^@]{0,60}\\b(?:to|for|by|from|of)\\b:?\\s{0,5}["'<]{0,2}(${ADDRESS})([^]*)$`,
      'i',
    ),
    isWeak: true,
  },
  { pattern: new RegExp(`(?:^|[\\s<"'(])(${ADDRESS})([^]*)$`), isWeak: true },
];

/** `lines`: the notice without the returned message. Returns at most `maxEntries`. */
export function readEntries(lines: readonly string[], maxEntries: number): NoticeEntry[] {
  const entries: { recipient: string; isWeak: boolean; lines: string[] }[] = [];
  const before: string[] = [];
  let dialog: string[] = [];
  for (const line of lines) {
    const found = entries.length < maxEntries && line.length < 2000 ? recipientIn(line) : null;
    const last = entries.at(-1);
    const isSameRecipient =
      found !== null && last !== undefined && sameAddress(last.recipient, found.recipient);
    if (found && !isSameRecipient && !(found.isWeak && last && !last.isWeak)) {
      entries.push({ recipient: found.recipient, isWeak: found.isWeak, lines: [...dialog, found.rest] });
      dialog = [];
    } else if (isDialog(line) && !isSameRecipient) dialog.push(line);
    else {
      (last?.lines ?? before).push(...dialog, line);
      dialog = [];
    }
  }
  (entries.at(-1)?.lines ?? before).push(...dialog);
  const introduction = joinLines(before);
  return entries.map(({ recipient, isWeak, lines }) => {
    const own = joinLines(lines);
    return {
      recipient,
      isWeak,
      text: /[a-z]{3}|[^\p{ASCII}]{3}/iu.test(own) ? own : `${introduction}${PARAGRAPH}${own}`.trim(),
    };
  });
}

/** Sendmail quotes the SMTP dialog before it names the failed recipient. */
function isDialog(line: string): boolean {
  return /^(?:>>>|<<<|(?:\.\.\. )?while talking to|[45]\d\d \S{1,255} \(smtp\)\.\.\.)/i.test(line);
}

function recipientIn(line: string): { recipient: string; rest: string; isWeak: boolean } | null {
  if (!line.includes('@') || (isDialog(line) && !/rcpt/i.test(line))) return null;
  for (const { pattern, isWeak, keepsLine } of FORMS) {
    const [, address = '', rest = ''] = pattern.exec(line) ?? [];
    // Not linear: what ADDRESS matches has at most 356 characters.
    const recipient = address.replace(/[.'"]+$/, '');
    if (recipient !== '' && isAddress(recipient)) return { recipient, rest: keepsLine ? line : rest, isWeak };
  }
  return null;
}

/**
 * Whether a text of a notice may be a mail address: a local part, and after the last `@` a domain without white space
 * and `/`; at most 320 characters. No rules of domain names are checked.
 */
export function isAddress(text: string): boolean {
  const at = text.lastIndexOf('@');
  return at > 0 && /^[^\s@/]{1,255}$/.test(text.slice(at + 1)) && text.length <= 320;
}

/** Compares without regard to case, in the local part, too. */
export function sameAddress(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}

/**
 * The lines as one string; empty lines become PARAGRAPH, which ends a quoted reply. The lookbehind lets each run of spaces
 * be searched for a line end only once: otherwise the time would be quadratic in its length.
 */
function joinLines(lines: readonly string[]): string {
  return lines
    .map((line) => line.replace(/^(?:> ){1,10}/, '').trim() || PARAGRAPH)
    .join(' ')
    .replaceAll(/(?<! ) *\n[ \n]*/g, PARAGRAPH)
    .trim()
    .slice(0, 4000);
}

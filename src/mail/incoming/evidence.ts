import type { SmtpPhase } from '../reply.ts';

/**
 * Finds the SMTP reply inside the words of a report: its codes, its text, and the command that it answered.
 * The words are another server's prose about a third one's answer, so each piece may be missing.
 */
export interface QuotedReply {
  /** 0 when none is quoted. */
  code: number;
  enhanced: string | null;
  stage: SmtpPhase | 'dsn';
}

/** Reply codes in use (RFC 5321 §4.2.3 and its extensions); other numbers of this size are ports and sizes. */
const CODES = new Set([
  421, 422, 430, 431, 432, 441, 442, 446, 447, 449, 450, 451, 452, 453, 454, 455, 458, 459, 471, 472, 499,
  500, 501, 502, 503, 504, 505, 510, 511, 512, 513, 515, 517, 519, 520, 521, 522, 523, 525, 530, 531, 533,
  534, 535, 536, 537, 538, 540, 541, 542, 543, 544, 546, 547, 549, 550, 551, 552, 553, 554, 555, 556, 557,
  559, 560, 565, 571, 572, 573, 574, 577, 580, 582, 590, 591, 598,
]);

/** `text` is one recipient's explanation, lines joined by blanks; at most a few thousand characters count. */
export function quotedReply(text: string): QuotedReply {
  const counted = text.slice(0, 4000);
  return { code: replyCode(counted), enhanced: innermostStatus(counted), stage: stageIn(counted) };
}

/** The first code that stands where a reply begins; 0 when there is none. */
export function replyCode(text: string): number {
  return replyAt(text)?.code ?? 0;
}

function replyAt(text: string): { code: number; at: number } | null {
  for (const match of text.matchAll(/(?<![\w.@/=+-])([45]\d\d)(?=[ :;,.)>-]|$)(?!\.?\d|-\d(?!\.\d))/g)) {
    const code = Number(match[1]);
    if (CODES.has(code)) return { code, at: match.index };
  }
  return null;
}

/**
 * The last enhanced code that says more than "failed": servers quote each other, and the innermost reply
 * comes last. Null when there is none.
 */
export function innermostStatus(text: string): string | null {
  let found: string | null = null;
  for (const match of text.matchAll(
    /(?<![\d.\w/-])(?:[45]\d\d[- ])?#?([45]\.\d{1,3}\.\d{1,3})(?!\d|\.\d|[-_/]?[a-z])/gi,
  )) {
    const status = match[1] ?? '';
    if (found === null || !isGeneric(status)) found = status;
  }
  return found;
}

export function isGeneric(status: string): boolean {
  return status.endsWith('.0.0');
}

/** Phrases by which servers name the command that was answered; in order of how sure they are. */
const STAGES: readonly [SmtpPhase, readonly string[]][] = [
  [
    'dot',
    [
      'end of data',
      'after i sent the message',
      'like our final data',
      'sending end of data',
      'in reply to end of data',
      'final dot',
      'after data was sent',
      'message body',
      '>>> .',
    ],
  ],
  [
    'rcpt',
    [
      'reply to rcpt',
      'after rcpt to',
      'after rcpt command',
      'rcpt command',
      'does not like recipient',
      'our rcpt to',
      '[rcpt_to]',
      '>>> rcpt',
      'rcpt to:<',
      'command rcpt',
      'rcpt to failed',
      'rcpt to response',
      'smtp:rcpt',
    ],
  ],
  [
    'data',
    [
      'reply to data',
      'after data',
      'data command',
      '>>> data',
      '[data]',
      'our data',
      'command data',
      '[body]',
    ],
  ],
  [
    'mail',
    [
      'reply to mail from',
      'after mail from',
      'mail from command',
      'mail command',
      'does not like sender',
      'but sender was rejected',
      'our mail from',
      '[mail_from]',
      '>>> mail',
      'command mail',
      'mail from response',
      'smtp:mail',
    ],
  ],
  [
    'ehlo',
    [
      'reply to ehlo',
      'reply to helo',
      'after ehlo',
      'after helo',
      '>>> ehlo',
      '>>> helo',
      'our helo',
      'our ehlo',
      'my name was rejected',
    ],
  ],
  [
    'greeting',
    [
      'initial connection',
      'initial greeting',
      'while receiving the initial',
      '[connect]',
      'after connect',
      'but greeting failed',
    ],
  ],
];

export function stageIn(text: string): SmtpPhase | 'dsn' {
  const lower = text.toLowerCase().replaceAll(/\s+/g, ' ');
  return STAGES.find(([, phrases]) => phrases.some((phrase) => includesWords(lower, phrase)))?.[0] ?? 'dsn';
}

/** Whether the phrase occurs as whole words: "our data" is not in "our database". Both in lower case. */
function includesWords(text: string, phrase: string): boolean {
  for (let at = text.indexOf(phrase); at >= 0; at = text.indexOf(phrase, at + 1)) {
    if (!joinsWord(text, at) && !joinsWord(text, at + phrase.length)) return true;
  }
  return false;
}

/** Whether the characters before and at the position belong to one word. */
function joinsWord(text: string, at: number): boolean {
  return /^[a-z0-9]{2}$/.test(text.slice(Math.max(at - 1, 0), at + 1));
}

/** The text from the quoted reply to the end of its paragraph: what the remote server itself said. '' when none is quoted. */
export function replyText(text: string): string {
  const found = replyAt(text.slice(0, 4000));
  if (!found) return '';
  const end = text.indexOf(PARAGRAPH, found.at);
  return text.slice(found.at, end < 0 ? undefined : end);
}

/** Stands for an empty line where lines are joined: a quoted reply ends there. */
export const PARAGRAPH = '\n';

/** The quoted code is closer to the fault than the reporter's own, unless it says nothing. */
export function preferred(quoted: string | null, status: string | null): string | null {
  if (!quoted) return status;
  return isGeneric(quoted) && status ? status : quoted;
}

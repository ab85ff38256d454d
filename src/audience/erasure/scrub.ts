import type { MessageContent } from '../../mail/content.ts';

/** Takes what names a person out of texts: the address and the number in the forms they occur in, and the name. */
export interface Person {
  /** `email_<md5>` or `phone_<md5>`, the e-mail's first. */
  identifiers: string[];
  /** All spellings that are known. */
  addresses: string[];
  phone: string | null;
  /** First and last name; null when only one is known: it could be any word. */
  fullName: string | null;
}

export interface Scrubber {
  /** Whether it names the person. */
  names(text: string): boolean;
  /** The identifier stands where the address or number stood, `[erased]` in place of the name. */
  text(text: string): string;
  /** All texts inside a JSON text; keys, numbers and the shape stay. */
  json(json: string): string;
}

const ERASED = '[erased]';
/** Of an open or a click, what tells of the person rather than of the mail. */
const PERSONAL_FIELDS = new Set(['ip', 'userAgent']);

/** `ada@example.net` does not stand in `canada@example.net`, nor in `ada@example.network`, but in `%3Dada@…`. */
const BEFORE = String.raw`(?:(?<![\p{L}\p{N}._+-])|(?<=%[0-9a-f]{2}))`;
const BEHIND = String.raw`(?![\p{L}\p{N}-]|\.[\p{L}\p{N}])`;

export function createScrubber({ identifiers, addresses, phone, fullName }: Person): Scrubber {
  const identifier = identifiers[0] ?? ERASED;
  const reach = [...addresses, ...(phone === null ? [] : [phone])];
  const replacements = new Map(
    // As they stand in a URL and in JSON, too.
    reach.flatMap((text) => [
      [text.toLowerCase(), identifier],
      [encodeURIComponent(text).toLowerCase(), identifier],
      [JSON.stringify(text).slice(1, -1).toLowerCase(), identifier],
    ]),
  );
  if (fullName !== null) replacements.set(fullName.toLowerCase(), ERASED);
  const known = [...replacements.keys()].map(escaped).toSorted(longerFirst).join('|') || '(?!)';
  const pattern = new RegExp(`${BEFORE}(?:${known})${BEHIND}`, 'giu');
  const text = (given: string) =>
    given.replaceAll(pattern, (found) => replacements.get(found.toLowerCase()) ?? identifier);
  return {
    names: (given) => given.search(pattern) !== -1,
    text,
    json: (given) =>
      JSON.stringify(
        JSON.parse(given, (_, value: unknown) => (typeof value === 'string' ? text(value) : value)),
      ),
  };
}

function escaped(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, String.raw`\$&`);
}

function longerFirst(one: string, two: string): number {
  return two.length - one.length;
}

/** An event's own fields without what is personal beside names. */
export function withoutPersonalFields(json: string): string {
  return JSON.stringify(
    JSON.parse(json, (key, value: unknown) => (PERSONAL_FIELDS.has(key) ? undefined : value)),
  );
}

/**
 * A content that others still get: the person stands in its To and Cc no more, nor in any of its texts. What is
 * inside an attachment is out of reach.
 */
export function withoutRecipient(json: string, scrubber: Scrubber): string {
  // Sound: contents are written by `sending` alone, in this form.
  const { from, attachments, to, cc, ...texts } = JSON.parse(json) as MessageContent;
  const others = (mailboxes: MessageContent['to']) =>
    mailboxes
      .filter(({ address }) => !scrubber.names(address))
      .map(({ name, address }) => ({ name: scrubber.text(name), address }));
  const clean: object = JSON.parse(scrubber.json(JSON.stringify(texts)));
  return JSON.stringify({ from, to: others(to), cc: others(cc), ...clean, attachments });
}

import type { MessageContent } from '../../mail/content.ts';

/** What identifies a person in texts. */
export interface Person {
  /** `email_<md5>` or `phone_<md5>`, the email's first. */
  identifiers: string[];
  /** All spellings that are known. */
  addresses: string[];
  phone: string | null;
  /** First and last name; null when only one is known, which could be any word. */
  fullName: string | null;
}

const ERASED = '[erased]';

/** `ada@example.net` does not match `canada@example.net` or `ada@example.network`, but matches `%3Dada@…`. */
const BEFORE = String.raw`(?:(?<![\p{L}\p{N}._+-])|(?<=%[0-9a-f]{2}))`;
const AFTER = String.raw`(?![\p{L}\p{N}-]|\.[\p{L}\p{N}])`;

/**
 * Removes a person from texts: address and number in all the forms they occur in, and the full name. Compiles one
 * pattern, regardless of case, from the addresses and the number (also in URL and JSON encoding) and the full name. The
 * first identifier replaces all values but the name. `json` throws a SyntaxError for text that is not JSON.
 */
export function createScrubber({ identifiers, addresses, phone, fullName }: Person) {
  const identifier = identifiers[0] ?? ERASED;
  const values = [...addresses, ...(phone === null ? [] : [phone])];
  const replacements = new Map(
    // Also as they are encoded in a URL and in JSON.
    values.flatMap((text) => [
      [text.toLowerCase(), identifier],
      [encodeURIComponent(text).toLowerCase(), identifier],
      [JSON.stringify(text).slice(1, -1).toLowerCase(), identifier],
    ]),
  );
  if (fullName !== null) replacements.set(fullName.toLowerCase(), ERASED);
  const known = [...replacements.keys()].map(escaped).toSorted(longerFirst).join('|') || '(?!)';
  const pattern = new RegExp(`${BEFORE}(?:${known})${AFTER}`, 'giu');
  const text = (input: string) =>
    input.replaceAll(pattern, (found) => replacements.get(found.toLowerCase()) ?? identifier);
  return {
    /** Whether the text contains the person. */
    matches: (input: string): boolean => input.search(pattern) !== -1,
    /** Replaces addresses and numbers with the identifier, and the name with `[erased]`. */
    text,
    /** Replaces all strings of a JSON document; keys, numbers and the structure are unchanged. */
    json: (input: string): string =>
      JSON.stringify(
        JSON.parse(input, (_, value: unknown) => (typeof value === 'string' ? text(value) : value)),
      ),
  };
}

export type Scrubber = ReturnType<typeof createScrubber>;

function escaped(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, String.raw`\$&`);
}

function longerFirst(one: string, two: string): number {
  return two.length - one.length;
}

/**
 * Removes the person from a content that is still to be sent to others: from To, Cc and all texts. Attachments are not
 * changed.
 */
export function withoutRecipient(content: MessageContent, scrubber: Scrubber): MessageContent {
  const { from, attachments, to, cc, ...texts } = content;
  const others = (mailboxes: MessageContent['to']) =>
    mailboxes
      .filter(({ address }) => !scrubber.matches(address))
      .map(({ name, address }) => ({ name: scrubber.text(name), address }));
  const clean: typeof texts = JSON.parse(scrubber.json(JSON.stringify(texts)));
  return { from, to: others(to), cc: others(cc), ...clean, attachments };
}

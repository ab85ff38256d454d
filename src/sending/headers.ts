import { textFault } from '../templates/text.ts';

/**
 * The caller's own header fields: which may be set at all. What the service itself sets, what identifies the
 * sender, and trace fields are not the caller's.
 */
const NAME = /^[A-Za-z0-9-]{1,76}$/;
export const MAX_HEADERS = 50;
const MAX_BYTES = 8 * 1024;

const REFUSED = new Set([
  'from',
  'sender',
  'to',
  'cc',
  'bcc',
  'subject',
  'reply-to',
  'date',
  'message-id',
  'return-path',
  'authentication-results',
  'mime-version',
  'feedback-id',
]);
const REFUSED_PREFIXES = ['received', 'dkim-', 'arc-', 'content-', 'x-postrider-', 'cfbl-', 'resent-'];

/** The fields as pairs, in order; faults are told one by one. */
export function checkHeaders(
  headers: Record<string, string>,
  fault: (field: string, message: string) => void,
): [string, string][] {
  const entries = Object.entries(headers);
  if (entries.length > MAX_HEADERS)
    fault('headers', `at most ${MAX_HEADERS} header fields, here are ${entries.length}`);
  const bytes = entries.reduce((sum, [name, value]) => sum + name.length + Buffer.byteLength(value) + 4, 0);
  if (bytes > MAX_BYTES) {
    // What they hold is not looked at: it may be megabytes.
    fault('headers', `at most ${MAX_BYTES} bytes together, here are ${bytes}`);
    return entries;
  }
  const seen = new Set<string>();
  for (const [name, value] of entries.slice(0, MAX_HEADERS)) {
    const problem = headerFault(name, value, seen);
    if (problem !== null) fault(`headers.${name}`, problem);
    seen.add(name.toLowerCase());
  }
  return entries;
}

function headerFault(name: string, value: string, seen: ReadonlySet<string>): string | null {
  const lower = name.toLowerCase();
  if (!NAME.test(name)) return 'a header name is 1 to 76 of A-Z, a-z, 0-9 and "-"';
  if (REFUSED.has(lower) || REFUSED_PREFIXES.some((prefix) => lower.startsWith(prefix)))
    return 'is set by the service and cannot be given here';
  if (seen.has(lower)) return 'is given twice';
  if (/[\r\n]/.test(value)) return 'must not hold a line break';
  if (lower === 'list-unsubscribe' && !/^\s*<[^<>\s]+>(\s*,\s*<[^<>\s]+>)*\s*$/.test(value)) {
    return 'must be a list of addresses in angle brackets, such as "<https://example.com/u>"';
  }
  return textFault(value);
}

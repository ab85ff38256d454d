import { textFault } from '../core/refusal.ts';

/** Header fields of a request. Fields that the service sets, that identify the sender or that are traces are refused. */
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

/** Returns the fields in order and reports each fault. */
export function checkHeaders(
  headers: Record<string, string>,
  fault: (field: string, message: string) => void,
): [string, string][] {
  const entries = Object.entries(headers);
  if (entries.length > MAX_HEADERS)
    fault('headers', `must have at most ${MAX_HEADERS} fields; it has ${entries.length}`);
  const bytes = entries.reduce((sum, [name, value]) => sum + name.length + Buffer.byteLength(value) + 4, 0);
  if (bytes > MAX_BYTES) {
    // The contents are not checked: they can have megabytes.
    fault('headers', `must have at most ${MAX_BYTES} bytes; it has ${bytes}`);
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
  if (!NAME.test(name)) return 'must have a name of 1 to 76 characters A-Z, a-z, 0-9 or "-"';
  if (REFUSED.has(lower) || REFUSED_PREFIXES.some((prefix) => lower.startsWith(prefix)))
    return 'is set by the service and cannot be given here';
  if (seen.has(lower)) return 'is given twice';
  if (/[\r\n]/.test(value)) return 'must not contain a line break';
  if (lower === 'list-unsubscribe' && !/^\s*<[^<>\s]+>(\s*,\s*<[^<>\s]+>)*\s*$/.test(value)) {
    return 'must be a list of addresses in angle brackets, such as "<https://example.com/u>"';
  }
  return textFault(value);
}

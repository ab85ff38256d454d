import { BULK_FIELDS } from '../mail/compose.ts';
import { isUrlList } from '../mail/headers.ts';
import { textFault } from '../mail/text-fault.ts';
import type { Fault } from './faults.ts';

/* Custom header fields. Those that the service sets, that identify the sender or that are traces are refused. */

const NAME = /^[A-Za-z0-9-]{1,76}$/;
export const MAX_HEADERS = 50;
const MAX_BYTES = 8 * 1024;

const SERVICE_FIELDS: ReadonlySet<string> = new Set([
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
const SERVICE_PREFIXES = ['received', 'dkim-', 'arc-', 'content-', 'x-postrider-', 'cfbl-', 'resent-'];

/** Whether a caller cannot set the field. `name`: in lower case. */
export function isServiceField(name: string): boolean {
  return SERVICE_FIELDS.has(name) || SERVICE_PREFIXES.some((prefix) => name.startsWith(prefix));
}

/** A warning for each field that the service replaces in marketing mail. */
export function replacedFieldWarnings(headers: readonly [name: string, value: string][]): string[] {
  return headers.flatMap(([name]) =>
    BULK_FIELDS.has(name.toLowerCase())
      ? [`headers.${name} has no effect: the service sets it in marketing mail`]
      : [],
  );
}

/** Returns the fields in order and reports each fault. */
export function checkHeaders(headers: Record<string, string>, fault: Fault): [string, string][] {
  const entries = Object.entries(headers);
  if (entries.length > MAX_HEADERS)
    fault('headers', `must have at most ${MAX_HEADERS} fields; it has ${entries.length}`);
  const bytes = entries.reduce((sum, [name, value]) => sum + name.length + Buffer.byteLength(value) + 4, 0);
  if (bytes > MAX_BYTES) {
    // The values are not checked: they can have megabytes.
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
  if (!NAME.test(name)) return 'must have a name of 1 to 76 characters from A-Z, a-z, 0-9 and "-"';
  if (isServiceField(lower)) return 'is set by the service and cannot be given here';
  if (seen.has(lower)) return 'is given twice';
  if (/[\r\n]/.test(value)) return 'must not contain a line break';
  if (lower === 'list-unsubscribe' && !isUrlList(value)) {
    return 'must be a list of addresses in angle brackets, such as "<https://example.com/u>", in ASCII and with at most 898 characters each';
  }
  return textFault(value);
}

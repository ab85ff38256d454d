/**
 * A contact's own fields, of whatever names and JSON values an account likes. They are kept exactly as given,
 * or refused: nothing is cut, rounded or dropped on the way.
 */
export type CustomFields = Record<string, unknown>;

/** Values in all, inner ones too. */
const MAX_VALUES = 1000;
const MAX_DEPTH = 5;
const MAX_BYTES = 64 * 1024;
const MAX_NAME = 100;

/** One value that cannot be kept; `path` leads to it from the object, '' is the object itself. */
export interface CustomFieldFault {
  path: string;
  message: string;
}

/** What is wrong first, or null. */
export function customFieldsFault(value: unknown): CustomFieldFault | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return { path: '', message: 'must be an object' };
  const count = { values: 0 };
  const fault = containerFault(value, '', 1, count);
  if (fault !== null) return fault;
  return Buffer.byteLength(JSON.stringify(value)) > MAX_BYTES
    ? { path: '', message: `is larger than ${MAX_BYTES} bytes of JSON` }
    : null;
}

function containerFault(
  container: object,
  path: string,
  depth: number,
  count: { values: number },
): CustomFieldFault | null {
  if (depth > MAX_DEPTH) return { path, message: `is nested more than ${MAX_DEPTH} levels deep` };
  for (const [name, value] of Object.entries(container)) {
    if (++count.values > MAX_VALUES) return { path: '', message: `holds more than ${MAX_VALUES} values` };
    const wrongName = Array.isArray(container) ? null : nameFault(name);
    if (wrongName !== null) return { path, message: wrongName };
    const place = Array.isArray(container) ? `${path}[${name}]` : path === '' ? name : `${path}.${name}`;
    const fault = valueFault(value, place, depth, count);
    if (fault !== null) return fault;
  }
  return null;
}

function nameFault(name: string): string | null {
  if (name === '') return 'has a field without a name';
  if (name.length > MAX_NAME) return `has a field whose name is longer than ${MAX_NAME} characters`;
  if (/[\p{Cc}\p{Cs}]/u.test(name)) return 'has a field whose name holds a control character';
  // It would become the prototype of whatever object it is copied into.
  return name === '__proto__' ? 'must not have a field __proto__' : null;
}

function valueFault(
  value: unknown,
  path: string,
  depth: number,
  count: { values: number },
): CustomFieldFault | null {
  if (typeof value === 'object' && value !== null) return containerFault(value, path, depth + 1, count);
  if (typeof value === 'string') {
    const message = textFault(value);
    return message === null ? null : { path, message };
  }
  if (typeof value !== 'number') return null;
  const exact = Number.isInteger(value) ? Number.isSafeInteger(value) : Number.isFinite(value);
  return exact ? null : { path, message: 'is a number too large to be kept exactly; send it as a text' };
}

/** What no text may hold that is to come back as it was. */
export function textFault(text: string): string | null {
  if (text.includes('\u0000')) return 'must not hold the character U+0000';
  return text.isWellFormed() ? null : 'holds half a character (an unpaired surrogate)';
}

/** Fields that are given replace what was there, null takes one away (RFC 7396, on the first level). */
export function mergeCustomFields(before: CustomFields, given: CustomFields): CustomFields {
  const merged = { ...before, ...given };
  return Object.fromEntries(Object.entries(merged).filter(([, value]) => value !== null));
}

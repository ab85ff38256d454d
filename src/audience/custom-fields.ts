import { INEXACT, isInexact } from '../core/exact-numbers.ts';
import { textFault } from '../mail/text-fault.ts';

/**
 * Custom fields of a contact: any names and JSON values. They are stored unchanged or refused, never truncated or
 * rounded.
 */
export type CustomFields = Record<string, unknown>;

/** Total number of values, including nested ones. */
const MAX_VALUES = 1000;
const MAX_DEPTH = 5;
const MAX_BYTES = 64 * 1024;
const MAX_NAME = 100;

/** A value that cannot be stored; `path` from the object, '' for the object itself. */
export interface CustomFieldFault {
  path: string;
  message: string;
}

/** Returns the first fault, or null. */
export function customFieldsFault(value: unknown): CustomFieldFault | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return { path: '', message: 'must be an object' };
  const count = { values: 0 };
  const fault = containerFault(value, '', 1, count);
  if (fault !== null) return fault;
  return Buffer.byteLength(JSON.stringify(value)) > MAX_BYTES
    ? { path: '', message: `must have at most ${MAX_BYTES} bytes of JSON` }
    : null;
}

function containerFault(
  container: object,
  path: string,
  depth: number,
  count: { values: number },
): CustomFieldFault | null {
  if (depth > MAX_DEPTH) return { path, message: `must not be nested more than ${MAX_DEPTH} levels deep` };
  for (const [name, value] of Object.entries(container)) {
    if (++count.values > MAX_VALUES) return { path: '', message: `must have at most ${MAX_VALUES} values` };
    const wrongName = Array.isArray(container) ? null : nameFault(name);
    if (wrongName !== null) return { path, message: wrongName };
    const valuePath = Array.isArray(container) ? `${path}[${name}]` : path === '' ? name : `${path}.${name}`;
    const fault = valueFault(value, valuePath, depth, count);
    if (fault !== null) return fault;
  }
  return null;
}

function nameFault(name: string): string | null {
  if (name === '') return 'must not have a field without a name';
  if (name.length > MAX_NAME) return `must not have a field whose name is longer than ${MAX_NAME} characters`;
  if (/[\p{Cc}\p{Cs}]/u.test(name)) return 'must not have a field whose name contains a control character';
  // It would become the prototype of an object that it is copied into.
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
  return typeof value === 'number' && isInexact(value) ? { path, message: INEXACT } : null;
}

/** Merges fields on the first level; null removes a field (RFC 7396). */
export function mergeCustomFields(before: CustomFields, changes: CustomFields): CustomFields {
  const merged = { ...before, ...changes };
  return Object.fromEntries(Object.entries(merged).filter(([, value]) => value !== null));
}

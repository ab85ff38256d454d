/*
 * Numbers of a JSON text that differ from what the text contains: 12345678901234567890 is parsed as 12345678901234567000,
 * and 1e400 as Infinity.
 */

/** Follows the name of a field in an error. */
export const INEXACT = 'must be a number that can be stored exactly; send it as a string';

/** Whether a number can differ from the one in the JSON that it was parsed from. Fractions are rounded by definition. */
export function isInexact(value: number): boolean {
  return Number.isInteger(value) ? !Number.isSafeInteger(value) : !Number.isFinite(value);
}

/**
 * The path of the first inexact number in a JSON value, such as `.a[2].b`; '' for the value itself, null for none.
 * Recursive: the caller limits the depth of the value.
 */
export function inexactPath(value: unknown): string | null {
  if (typeof value === 'number') return isInexact(value) ? '' : null;
  if (typeof value !== 'object' || value === null) return null;
  const inner: unknown[] = Array.isArray(value) ? value : Object.values(value);
  for (const [index, one] of inner.entries()) {
    const path = inexactPath(one);
    if (path === null) continue;
    return Array.isArray(value) ? `[${index}]${path}` : `.${Object.keys(value)[index] ?? ''}${path}`;
  }
  return null;
}

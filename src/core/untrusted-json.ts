/* Reads members of untrusted JSON: a member of another type counts as missing. */

/** Null when the text is not JSON. */
export function parseUntrustedJson(text: string): unknown {
  try {
    const parsed: unknown = JSON.parse(text);
    return parsed;
  } catch {
    return null;
  }
}

/** The member of an object; undefined when it is missing, or when `value` is not an object. */
export function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}

/** A string member, truncated to `maxLength`; '' when it is missing or not a string. */
export function stringMember(value: unknown, name: string, maxLength: number): string {
  const found = memberOf(value, name);
  return typeof found === 'string' ? found.slice(0, maxLength) : '';
}

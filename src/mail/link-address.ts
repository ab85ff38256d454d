/**
 * The address that a link leads to, from the value of its `href`: read as a browser reads it (WHATWG URL), in a
 * form that may stand in a Location field. What is written in plain ASCII is kept as it was, to the character.
 */

/** Longer ones are not tracked: the address of the link made of it must fit the first line of a request. */
const MAX_LENGTH = 8192;
/** A browser drops these within an address, and blanks and all control characters around it. */
const WITHIN = /[\t\n\r]/g;
const PLAIN = /^https?:\/\/(?![/\\])[\u0021-\u007e]+$/i;

/** Null for what is no http or https address. */
export function linkAddress(href: string): string | null {
  const written = trimmed(href).replace(WITHIN, '');
  if (!/^https?:/i.test(written) || !URL.canParse(written)) return null;
  const address = PLAIN.test(written) ? written : new URL(written).href;
  return address.length > MAX_LENGTH ? null : address;
}

function trimmed(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && text.charCodeAt(start) <= 0x20) start++;
  while (end > start && text.charCodeAt(end - 1) <= 0x20) end--;
  return text.slice(start, end);
}

import { parse } from 'tldts';
import { organizationalDomain, PUBLIC_SUFFIX_OPTIONS } from '../address.ts';

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

/** A link's text up to the first blank, without an opening mark; where a domain could be, there is a dot. */
const FIRST_WORD = /^[\s([{<"'\u00ab\u2018\u201c\u201e]*([^\s]+\.[^\s]+)/;
const CLOSING_MARKS = /[)\]}>"'\u00bb\u2019\u201d.,;:!?\u2026]+$/;

/**
 * The organizational domain that a link's text pretends to lead to: of the URL or host name with which the text
 * begins. Null where it begins with neither. Mail filters take a link that leads elsewhere for phishing.
 */
export function shownDomain(text: string): string | null {
  const word = FIRST_WORD.exec(text)?.[1]?.replace(CLOSING_MARKS, '');
  if (word === undefined) return null;
  const isUrl = /^https?:\/\//i.test(word);
  const url = isUrl ? word : `http://${word}`;
  if (!URL.canParse(url)) return null;
  const { hostname, username } = new URL(url);
  if (isUrl) return organizationalDomain(hostname);
  const { domain, isIcann, isPrivate } = parse(hostname, PUBLIC_SUFFIX_OPTIONS);
  // `node.js` is no host name, and an email address is no link that leads elsewhere.
  return username === '' && (isIcann === true || isPrivate === true) ? domain : null;
}

function trimmed(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && text.charCodeAt(start) <= 0x20) start++;
  while (end > start && text.charCodeAt(end - 1) <= 0x20) end--;
  return text.slice(start, end);
}

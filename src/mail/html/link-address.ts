import { parse } from 'tldts';
import { organizationalDomain, PUBLIC_SUFFIX_OPTIONS } from '../address.ts';

/*
 * Parses the URL in the `href` of a link as a browser does (WHATWG URL), for a Location field. A URL in ASCII is returned
 * unchanged.
 */

/** A longer URL is not tracked: the tracked URL must fit in a request line. */
const MAX_LENGTH = 8192;
/** Browsers remove these inside a URL, and all spaces and control characters around it. */
const IGNORED_INSIDE = /[\t\n\r]/g;
const PLAIN = /^https?:\/\/(?![/\\])[\u0021-\u007e]+$/i;

/** Returns the URL, or null when it is not an http or https URL. */
export function parseLinkUrl(href: string): string | null {
  const url = trimControls(href).replace(IGNORED_INSIDE, '');
  if (!/^https?:/i.test(url) || !URL.canParse(url)) return null;
  const address = PLAIN.test(url) ? url : new URL(url).href;
  return address.length > MAX_LENGTH ? null : address;
}

/** The first word of a link's text, without opening punctuation. */
const FIRST_WORD = /^[\s([{<"'\u00ab\u2018\u201c\u201e]*(\S*)/;
/** Host names under top-level domains that neither the Public Suffix List nor the registry of RFC 6761 has. */
const HOST_NAME = /^www\.|\.internal$/;
/** The lookbehind makes the time linear: of a run of marks only the first one begins a search. */
const CLOSING_MARKS = /(?<![)\]}>"'\u00bb\u2019\u201d.,;:!?\u2026])[)\]}>"'\u00bb\u2019\u201d.,;:!?\u2026]+$/;

/**
 * The organizational domain of the URL or host name at the start of a link's text, null when there is none. Mail filters
 * treat a link with another target domain as phishing.
 */
export function displayedDomain(text: string): string | null {
  const word = FIRST_WORD.exec(text)?.[1]?.replace(CLOSING_MARKS, '') ?? '';
  // As in a domain name, a dot has characters before and after it.
  if (word.indexOf('.', 1) === -1) return null;
  const isUrl = /^https?:\/\//i.test(word);
  const target = isUrl ? word : `http://${word}`;
  if (!URL.canParse(target)) return null;
  const { hostname, username } = new URL(target);
  if (isUrl) return organizationalDomain(hostname);
  const name = parse(hostname, { ...PUBLIC_SUFFIX_OPTIONS, detectSpecialUse: true });
  // `node.js` is not a host name, and a mail address is not a URL.
  const isKnown = name.isIcann === true || name.isPrivate === true || name.isSpecialUse === true;
  return username === '' && (isKnown || HOST_NAME.test(hostname)) ? name.domain : null;
}

function trimControls(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && text.charCodeAt(start) <= 0x20) start++;
  while (end > start && text.charCodeAt(end - 1) <= 0x20) end--;
  return text.slice(start, end);
}

import { domainToASCII, domainToUnicode } from 'node:url';
import { getDomain } from 'tldts';
import type { Mailbox } from './content.ts';

/*
 * Parses and formats mail addresses: RFC 5321 §4.1.2 for the address, RFC 6531 for non-ASCII characters, RFC 5322 §3.4
 * for the display name. Stricter than the RFCs: no comments, groups, source routes or address literals, and a domain has
 * at least two labels. Syntax only, without DNS.
 *
 * A parser returns the value, or the text of the error, which follows the name of the field: `to: has no "@"`.
 */

const MAX_ADDRESS = 254;
const MAX_LOCAL = 64;
const MAX_DOMAIN = 253;
const MAX_NAME = 200;
/** A display name with escapes, quotation marks and extra spaces. */
const MAX_RAW_NAME = 4 * MAX_NAME;
/** Limits on the input, one mailbox and a list of them, before it is parsed character by character. */
const MAX_RAW_MAILBOX = 4096;
const MAX_RAW_LIST = 64 * 1024;
const NAME_TOO_LONG = `the name is longer than ${MAX_NAME} characters`;

/** RFC 5322 §3.2.3, with RFC 6531 §3.3's UTF-8. */
const ATEXT = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~\\u{80}-\\u{10ffff}-]";
const DOT_ATOM = new RegExp(`^${ATEXT}+(?:\\.${ATEXT}+)*$`, 'u');
const PLAIN_NAME = new RegExp(`^${ATEXT}+(?: ${ATEXT}+)*$`, 'u');
/** RFC 5321 §4.1.2 Quoted-string; the closing quotation mark is only at the end. */
const QUOTED_LOCAL = /^"(?:[^"\\]|\\[ -~])*"$/u;

/** Control characters, lone surrogates and Unicode line breaks: never in a header or a log line. */
const FORBIDDEN = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u;
/** Spaces and zero-width characters that are pasted by accident and cause bounces for no visible reason. */
const INVISIBLE = /(?! )[\p{Z}\p{Cf}]/u;
const NON_ASCII = /\P{ASCII}/u;

/** LDH labels (RFC 5890 §2.3.1); the last begins with a letter, so `127.0.0.1` and `0x7f.1` are not domains. */
const DOMAIN = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const IDN_INPUT = /^[A-Za-z0-9.\u{80}-\u{10ffff}-]+$/u;
const HAS_A_LABEL = /(?:^|\.)xn--/i;
const A_LABEL = /^xn--/;

/** Characters that are not allowed outside quotation marks, with the error for the likely intention. */
const MISPLACED: Record<string, string> = {
  '(': 'comments in parentheses are not accepted',
  ')': 'comments in parentheses are not accepted',
  '[': 'an IP address in brackets is not accepted: use a domain name',
  ']': 'an IP address in brackets is not accepted: use a domain name',
  ':': 'groups are not accepted',
  ';': 'groups are not accepted: separate addresses by commas',
  '>': 'contains ">" without "<"',
  '\\': 'contains a backslash outside quotation marks',
};

/** Parses one address, with or without a display name. */
export function parseMailbox(text: string): Mailbox | string {
  if (text.length > MAX_RAW_MAILBOX) return `is longer than ${MAX_RAW_MAILBOX} characters`;
  if (FORBIDDEN.test(text)) return 'contains a control character or a line break';
  const read = readMailbox(text, 0);
  if (typeof read === 'string') return read;
  return read.end === text.length ? read.mailbox : 'contains more than one address';
}

/**
 * Parses a comma-separated list, and calls `fault` for each invalid element with its text and the error, until it returns
 * false: then the rest is not read. Returns the valid elements. An empty string or an empty element between commas is invalid. A list that is too long or that has a character
 * which no address may contain is invalid as a whole: its text is ''.
 */
export function parseMailboxList(list: string, fault: (text: string, error: string) => boolean): Mailbox[] {
  const mailboxes: Mailbox[] = [];
  if (list.length > MAX_RAW_LIST) fault('', `is longer than ${MAX_RAW_LIST} characters`);
  else if (FORBIDDEN.test(list)) fault('', 'contains a control character or a line break');
  else {
    for (let at = 0; at <= list.length; ) {
      const read = readMailbox(list, at);
      const end = typeof read === 'string' ? endOfElement(list, at) : read.end;
      if (typeof read !== 'string') mailboxes.push(read.mailbox);
      else if (!fault(list.slice(at, end).trim(), read)) break;
      at = end + 1;
    }
  }
  return mailboxes;
}

/** The offset of the next comma outside quotation marks, or the length of the text. */
function endOfElement(text: string, from: number): number {
  let quoted = false;
  for (let at = from; at < text.length; at++) {
    if (text[at] === '"') quoted = !quoted;
    else if (text[at] === '\\' && quoted) at++;
    else if (text[at] === ',' && !quoted) return at;
  }
  return text.length;
}

/** Formats a mailbox for display and JSON: UTF-8, the name quoted if necessary. `parseMailbox` parses the result. */
export function formatMailbox({ name, address }: Mailbox): string {
  if (name === '') return address;
  return PLAIN_NAME.test(name) ? `${name} <${address}>` : `${quotedString(name)} <${address}>`;
}

/** An RFC 5322 §3.2.4 quoted-string. */
export function quotedString(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&')}"`;
}

/** Whether only an SMTPUTF8 host accepts the address (RFC 6531). Domains are always sent as A-labels. */
export function needsSmtpUtf8(address: string): boolean {
  return NON_ASCII.test(address);
}

/** The part after the last `@`. */
export function domainOf(address: string): string {
  return address.slice(address.lastIndexOf('@') + 1);
}

/** Includes the private section of the public suffix list: customers of one hosting provider are separate. */
export const PUBLIC_SUFFIX_OPTIONS = { allowPrivateDomains: true };

/** The organizational domain of a host name; the name itself when it has none, such as an IP address. */
export function organizationalDomain(host: string): string {
  return getDomain(host, PUBLIC_SUFFIX_OPTIONS) ?? host;
}

/**
 * Returns a domain name of two labels or more as lower-case A-labels (RFC 5890) without trailing dot; null when it is
 * invalid: an address literal or dotted IP address, a single label, a URL, an invalid or overlong label.
 */
export function normalizeDomain(name: string): string | null {
  if (name.length > MAX_DOMAIN + 1) return null;
  const bare = name.endsWith('.') ? name.slice(0, -1) : name;
  const ascii = NON_ASCII.test(bare) || HAS_A_LABEL.test(bare) ? aLabels(bare) : bare.toLowerCase();
  return ascii.length <= MAX_DOMAIN && DOMAIN.test(ascii) ? ascii : null;
}

/** '' for an invalid name. IDN_INPUT excludes `/`, `:` and `%`, at which the URL parser would truncate the name. */
function aLabels(name: string): string {
  const ascii = IDN_INPUT.test(name) ? domainToASCII(name) : '';
  const shown = domainToUnicode(ascii).split('.');
  // Some releases of Node accept A-labels that decode to nothing.
  const isValid = ascii
    .split('.')
    .every((label, n) => !A_LABEL.test(label) || NON_ASCII.test(shown[n] ?? ''));
  return isValid ? ascii : '';
}

interface ParsedMailbox {
  mailbox: Mailbox;
  /** Offset of the following comma, or the length of the text. */
  end: number;
}

/** Reads one mailbox up to a comma or the end: words, then possibly an address in angle brackets. */
function readMailbox(text: string, from: number): ParsedMailbox | string {
  const words: string[] = [];
  let at = skipSpaces(text, from);
  while (at < text.length && text[at] !== ',' && text[at] !== '<') {
    const end = endOfWord(text, at);
    if (typeof end === 'string') return inName(text, from) ?? end;
    words.push(text.slice(at, end));
    at = skipSpaces(text, end);
  }
  if (text[at] === '<') return at - from > MAX_RAW_NAME ? NAME_TOO_LONG : readAngle(text, at, words);
  if (words.length === 0) return 'is empty';
  if (words.length > 1) return 'contains a space: put the address after a name in <angle brackets>';
  const mailbox = readAddress(words[0] ?? '', '');
  if (typeof mailbox !== 'string') return { mailbox, end: at };
  return (text[at] === ',' ? inName(text, from) : null) ?? mailbox;
}

/** Characters of a display name that have a meaning outside of quotation marks. */
const NEEDS_QUOTES = /[()[\],:;\\]/;
/** Characters of a mailbox that a message repeats. */
const MAX_SUGGESTION = 120;

/** The message for a name that must be in quotation marks; null: the text does not begin with such a name and an address. */
function inName(text: string, from: number): string | null {
  const open = text.indexOf('<', from);
  const close = text.indexOf('>', open);
  const name = text.slice(from, open).trim();
  const [character] = NEEDS_QUOTES.exec(name) ?? [];
  if (open === -1 || close === -1 || name.includes('@') || name.includes('"') || character === undefined)
    return null;
  const suggestion = `${quotedString(name)} ${text.slice(open, close + 1)}`;
  const example = suggestion.length > MAX_SUGGESTION ? '' : `: ${suggestion}`;
  return `the name contains "${character}" and must be in quotation marks${example}`;
}

/** Reads the address in angle brackets; `words` are the display name. */
function readAngle(text: string, open: number, words: string[]): ParsedMailbox | string {
  const start = skipSpaces(text, open + 1);
  if (text[start] === '@') return 'source routes are not accepted';
  const stop = endOfWord(text, start, '>');
  if (typeof stop === 'string') return stop;
  const close = skipSpaces(text, stop);
  if (text[close] !== '>') return 'the address in <angle brackets> is not closed or contains a space';
  const name = words.map(unquoted).join(' ').trim();
  if (name.length > MAX_NAME) return NAME_TOO_LONG;
  const mailbox = readAddress(text.slice(start, stop), name);
  if (typeof mailbox === 'string') return mailbox;
  const end = skipSpaces(text, close + 1);
  if (end < text.length && text[end] !== ',') return 'contains text after the address';
  return { mailbox, end };
}

function skipSpaces(text: string, from: number): number {
  let at = from;
  while (text[at] === ' ') at++;
  return at;
}

/** The end of adjacent atoms and quoted strings: a space, a comma, a `<` or `stop`. */
function endOfWord(text: string, from: number, stop = ','): number | string {
  let at = from;
  for (; at < text.length; at++) {
    const char = text.charAt(at);
    if (char === ' ' || char === ',' || char === '<' || char === stop) break;
    if (MISPLACED[char] !== undefined) return MISPLACED[char];
    if (char !== '"') continue;
    for (at++; text[at] !== '"'; at++) {
      if (at >= text.length) return 'a quote is not closed';
      if (text[at] === '\\') at++;
    }
  }
  return at;
}

/** A word of the display name without quotation marks and backslashes. */
function unquoted(word: string): string {
  // Not linear: an address with its name has at most 4,096 characters.
  return word.includes('"')
    ? word.replace(/"((?:[^"\\]|\\.)*)"/gu, (_, inner: string) => inner.replace(/\\(.)/gu, '$1'))
    : word;
}

/**
 * Returns the canonical form of a local part, so that equal addresses are equal strings: quoted only where necessary
 * (RFC 5321 §4.1.2), and in NFC (RFC 6532 §3.1).
 */
function canonicalLocal(local: string): string {
  const composed = local.normalize('NFC');
  if (!composed.startsWith('"')) return composed;
  const bare = composed.slice(1, -1).replace(/\\(.)/gu, '$1');
  return DOT_ATOM.test(bare) ? bare : `"${bare.replace(/["\\]/g, '\\$&')}"`;
}

/** Parses `local@domain`. */
function readAddress(text: string, name: string): Mailbox | string {
  const at = text.startsWith('"') ? text.indexOf('@', text.lastIndexOf('"')) : text.indexOf('@');
  if (at === -1) return 'has no "@"';
  const written = text.slice(0, at);
  const domain = text.slice(at + 1);
  if (written === '') return 'has nothing before the "@"';
  if (domain === '') return 'has nothing after the "@"';
  if (INVISIBLE.test(text)) return 'contains an invisible character';
  if (!(written.startsWith('"') ? QUOTED_LOCAL : DOT_ATOM).test(written))
    return 'the part before the "@" is malformed';
  const local = canonicalLocal(written);
  if (Buffer.byteLength(local) > MAX_LOCAL)
    return `the part before the "@" is longer than ${MAX_LOCAL} bytes`;
  const normal = domain.endsWith('.') ? null : normalizeDomain(domain);
  if (normal === null) return 'the part after the "@" is not a domain name';
  const address = `${local}@${normal}`;
  return Buffer.byteLength(address) > MAX_ADDRESS ? `is longer than ${MAX_ADDRESS} bytes` : { name, address };
}

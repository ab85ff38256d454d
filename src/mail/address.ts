import { domainToASCII, domainToUnicode } from 'node:url';
import type { Mailbox } from './content.ts';

/**
 * Reads and writes mail addresses: RFC 5321 §4.1.2 for the address, RFC 6531 for what is not ASCII, RFC 5322
 * §3.4 for the display name. Stricter than those where leniency helps nobody: no comments, groups, source
 * routes or address literals, and a domain has at least two labels. Pure syntax: never asks DNS.
 *
 * A reader returns the value, or a string that says in a person's words what is wrong.
 */
const MAX_ADDRESS = 254;
const MAX_LOCAL = 64;
const MAX_DOMAIN = 253;
const MAX_NAME = 200;
/** With every character escaped, quoted and far apart. */
const MAX_RAW_NAME = 4 * MAX_NAME;
/** One address with its name, and a list of them, before they are read character by character. */
const MAX_RAW_MAILBOX = 4096;
const MAX_RAW_LIST = 64 * 1024;
const NAME_TOO_LONG = `the name is longer than ${MAX_NAME} characters`;

/** RFC 5322 §3.2.3, with RFC 6531 §3.3's UTF-8. */
const ATEXT = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~\\u{80}-\\u{10ffff}-]";
const DOT_ATOM = new RegExp(`^${ATEXT}+(?:\\.${ATEXT}+)*$`, 'u');
const PLAIN_NAME = new RegExp(`^${ATEXT}+(?: ${ATEXT}+)*$`, 'u');
/** RFC 5321 §4.1.2 Quoted-string; the closing quote stands only at the end. */
const QUOTED_LOCAL = /^"(?:[^"\\]|\\[ -~])*"$/u;

/** Controls, lone surrogates and Unicode's own line breaks: nothing that may reach a header or a log line. */
const FORBIDDEN = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u;
/** Blanks and zero-width characters that are pasted along by accident and bounce without anyone seeing why. */
const INVISIBLE = /(?! )[\p{Z}\p{Cf}]/u;
const NON_ASCII = /\P{ASCII}/u;

/** LDH labels (RFC 5890 §2.3.1); the last begins with a letter, so `127.0.0.1` and `0x7f.1` are no domains. */
const DOMAIN = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const IDN_INPUT = /^[A-Za-z0-9.\u{80}-\u{10ffff}-]+$/u;
const HAS_A_LABEL = /(?:^|\.)xn--/i;
const A_LABEL = /^xn--/;

/** What may not stand outside quotes, and what its writer most likely meant. */
const MISPLACED: Record<string, string> = {
  '(': 'comments in parentheses are not accepted',
  ')': 'comments in parentheses are not accepted',
  '[': 'an IP address in brackets is not accepted, a domain name is needed',
  ']': 'an IP address in brackets is not accepted, a domain name is needed',
  ':': 'groups are not accepted',
  ';': 'groups are not accepted; separate addresses by commas',
  '>': 'a ">" stands without its "<"',
  '\\': 'a backslash stands outside quotes',
};

/** One address, plain or with a display name. */
export function parseMailbox(text: string): Mailbox | string {
  if (text.length > MAX_RAW_MAILBOX) return `is longer than ${MAX_RAW_MAILBOX} characters`;
  if (FORBIDDEN.test(text)) return 'holds a control character or a line break';
  const read = readMailbox(text, 0);
  if (typeof read === 'string') return read;
  return read.end === text.length ? read.mailbox : 'holds more than one address';
}

/**
 * A comma-joined list, or an array whose elements may be lists themselves. `[]` gives `[]`; an empty string or
 * an empty place between commas is a fault.
 */
export function parseMailboxList(value: string | readonly string[]): Mailbox[] | string {
  const mailboxes: Mailbox[] = [];
  for (const text of typeof value === 'string' ? [value] : value) {
    if (text.length > MAX_RAW_LIST) return `is longer than ${MAX_RAW_LIST} characters`;
    if (FORBIDDEN.test(text)) return 'holds a control character or a line break';
    let at = 0;
    do {
      const read = readMailbox(text, at);
      if (typeof read === 'string') return read;
      mailboxes.push(read.mailbox);
      at = read.end + 1;
    } while (at <= text.length);
  }
  return mailboxes;
}

/** For people and JSON: UTF-8 as it is, quotes where the name needs them. `parseMailbox` reads it back. */
export function formatMailbox({ name, address }: Mailbox): string {
  if (name === '') return address;
  return PLAIN_NAME.test(name) ? `${name} <${address}>` : `${quoted(name)} <${address}>`;
}

/** An RFC 5322 §3.2.4 quoted-string. */
export function quoted(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&')}"`;
}

/** True when only an SMTPUTF8 host can take it (RFC 6531): a domain always travels as A-labels. */
export function needsSmtpUtf8(address: string): boolean {
  return NON_ASCII.test(address);
}

/** What stands behind the last `@`. */
export function domainOf(address: string): string {
  return address.slice(address.lastIndexOf('@') + 1);
}

/**
 * A domain name of two labels or more as lower-case A-labels (RFC 5890) without trailing dot; null when it is
 * none: an address literal or dotted IP address, a single label, a URL, a bad or overlong label.
 */
export function normalizeDomain(name: string): string | null {
  if (name.length > MAX_DOMAIN + 1) return null;
  const bare = name.endsWith('.') ? name.slice(0, -1) : name;
  const ascii = NON_ASCII.test(bare) || HAS_A_LABEL.test(bare) ? aLabels(bare) : bare.toLowerCase();
  return ascii.length <= MAX_DOMAIN && DOMAIN.test(ascii) ? ascii : null;
}

/** '' when it cannot be done. The look before keeps the URL parser behind it from cutting at `/`, `:` or `%`. */
function aLabels(name: string): string {
  const ascii = IDN_INPUT.test(name) ? domainToASCII(name) : '';
  const shown = domainToUnicode(ascii).split('.');
  // Some releases of Node let an `xn--` pass that stands for nothing.
  const isSound = ascii
    .split('.')
    .every((label, n) => !A_LABEL.test(label) || NON_ASCII.test(shown[n] ?? ''));
  return isSound ? ascii : '';
}

interface Read {
  mailbox: Mailbox;
  /** Offset of the comma that follows, or the text's length. */
  end: number;
}

/** Reads one mailbox: words, then perhaps an address in angle brackets, up to a comma or the end. */
function readMailbox(text: string, from: number): Read | string {
  const words: string[] = [];
  let at = skipBlanks(text, from);
  while (at < text.length && text[at] !== ',' && text[at] !== '<') {
    const end = endOfWord(text, at);
    if (typeof end === 'string') return end;
    words.push(text.slice(at, end));
    at = skipBlanks(text, end);
  }
  if (text[at] === '<') return at - from > MAX_RAW_NAME ? NAME_TOO_LONG : readAngle(text, at, words);
  if (words.length === 0) return 'is empty';
  if (words.length > 1) return 'an address holds no blanks; a name wants its address in <angle brackets>';
  const mailbox = readAddress(words[0] ?? '', '');
  return typeof mailbox === 'string' ? mailbox : { mailbox, end: at };
}

/** From the `<` on; `words` are the display name. */
function readAngle(text: string, open: number, words: string[]): Read | string {
  const start = skipBlanks(text, open + 1);
  if (text[start] === '@') return 'source routes are not accepted';
  const stop = endOfWord(text, start, '>');
  if (typeof stop === 'string') return stop;
  const close = skipBlanks(text, stop);
  if (text[close] !== '>') return 'the address in <angle brackets> is not closed or holds a blank';
  const name = words.map(unquoted).join(' ').trim();
  if (name.length > MAX_NAME) return NAME_TOO_LONG;
  const mailbox = readAddress(text.slice(start, stop), name);
  if (typeof mailbox === 'string') return mailbox;
  const end = skipBlanks(text, close + 1);
  if (end < text.length && text[end] !== ',') return 'something stands behind the address';
  return { mailbox, end };
}

function skipBlanks(text: string, from: number): number {
  let at = from;
  while (text[at] === ' ') at++;
  return at;
}

/** Runs over atoms and quoted strings that touch, up to a blank, a comma, a `<` or `stop`. */
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

/** A word of the display name without its quotes and backslashes. */
function unquoted(word: string): string {
  return word.includes('"')
    ? word.replace(/"((?:[^"\\]|\\.)*)"/gu, (_, inner: string) => inner.replace(/\\(.)/gu, '$1'))
    : word;
}

/**
 * A local part in the one form that we keep, so that nobody has two addresses: quoted only where it must be
 * (RFC 5321 §4.1.2), and composed (RFC 6532 §3.1).
 */
function plainLocal(local: string): string {
  const composed = local.normalize('NFC');
  if (!composed.startsWith('"')) return composed;
  const bare = composed.slice(1, -1).replace(/\\(.)/gu, '$1');
  return DOT_ATOM.test(bare) ? bare : `"${bare.replace(/["\\]/g, '\\$&')}"`;
}

/** `local@domain` without anything around it. */
function readAddress(text: string, name: string): Mailbox | string {
  const at = text.startsWith('"') ? text.indexOf('@', text.lastIndexOf('"')) : text.indexOf('@');
  if (at === -1) return 'has no "@"';
  const written = text.slice(0, at);
  const domain = text.slice(at + 1);
  if (written === '') return 'nothing stands before the "@"';
  if (domain === '') return 'nothing stands behind the "@"';
  if (INVISIBLE.test(text)) return 'holds an invisible character';
  if (!(written.startsWith('"') ? QUOTED_LOCAL : DOT_ATOM).test(written))
    return 'the part before the "@" is malformed';
  const local = plainLocal(written);
  if (Buffer.byteLength(local) > MAX_LOCAL)
    return `the part before the "@" is longer than ${MAX_LOCAL} octets`;
  const normal = domain.endsWith('.') ? null : normalizeDomain(domain);
  if (normal === null) return 'the part behind the "@" is no domain name';
  const address = `${local}@${normal}`;
  return Buffer.byteLength(address) > MAX_ADDRESS
    ? `is longer than ${MAX_ADDRESS} octets`
    : { name, address };
}

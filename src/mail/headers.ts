import { quotedString } from './address.ts';
import type { Mailbox } from './content.ts';

/*
 * Formats header fields: folded, in ASCII, no line over 998 bytes (RFC 5322 §2.1.1, §2.2.3), whatever the value. A field
 * is one string, `Name: value`, with CRLF and a space where it is folded, without final line end. Only an address that
 * requires SMTPUTF8 may be non-ASCII (RFC 6532).
 */

/** The limit of RFC 2047 §2 for lines with encoded-words, used for all lines. */
const MAX_LINE = 76;
/** A longer word is encoded, as it cannot be folded: well below the limit of 998. */
const MAX_BARE_WORD = 900;
const MAX_SPACES = 60;
/** A quoted-string is not folded; twice this length, if every character is escaped, still fits on a line. */
const MAX_QUOTED = 400;

const CONTROL = /\p{Cc}/u;
const PRINTABLE = /^[ -~]*$/;
/** A display name of RFC 5322 §3.2.3 atoms, which needs no quotation marks. */
const ATOMS = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?: [A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/;

/** A word and the spaces before it, where the line may be folded. */
interface Piece {
  spaces: string;
  word: string;
}

/**
 * Formats a field of free text: Subject, and the caller's fields. The words from the first to the last that need it are
 * encoded. Control characters become spaces.
 */
export function textField(name: string, value: string): string {
  const pieces = piecesOf(PRINTABLE.test(value) ? value : value.replace(/\p{Cc}/gu, ' '));
  const start = pieces.findIndex(needsEncoding);
  if (start === -1) return fold(name, pieces);
  // A long run of spaces must be inside an encoded-word, and so is the word before it.
  const first = (pieces[start]?.spaces.length ?? 0) > MAX_SPACES ? start - 1 : start;
  const last = pieces.findLastIndex(needsEncoding);
  const [head, ...rest] = pieces.slice(first, last + 1);
  const middle = (head?.word ?? '') + rest.map(({ spaces, word }) => spaces + word).join('');
  const words = encodedWords(middle, first === 0 ? MAX_LINE - name.length - 2 : MAX_LINE - 1);
  const encoded = words.map((word, index) => ({ spaces: (index === 0 && head?.spaces) || ' ', word }));
  return fold(name, [...pieces.slice(0, first), ...encoded, ...pieces.slice(last + 1)]);
}

/** Formats a field of words (ids, URLs, dates), which is folded between them and never encoded. */
export function wordsField(name: string, words: readonly string[]): string {
  return fold(
    name,
    words.map((word) => ({ spaces: ' ', word })),
  );
}

/** A URL that fits on a line, in angle brackets. */
const BRACKETED_URL = /<[!-;=?-~]{1,898}>/;
const URL_LIST = new RegExp(`^\\s*${BRACKETED_URL.source}(?:\\s*,\\s*${BRACKETED_URL.source})*\\s*$`);

/** Whether `urlListField` can format the value: URLs in ASCII, in angle brackets, with commas between them. */
export function isUrlList(value: string): boolean {
  return URL_LIST.test(value);
}

/** Formats a list of URLs (RFC 2369 §2), which is folded between them and never encoded. */
export function urlListField(name: string, value: string): string {
  const urls = value.match(/<[^<>]*>/g) ?? [];
  return wordsField(
    name,
    urls.map((url, index) => (index < urls.length - 1 ? `${url},` : url)),
  );
}

/** Formats From, To, Cc or Reply-To (RFC 5322 §3.4). */
export function addressField(name: string, mailboxes: readonly Mailbox[]): string {
  const words: string[] = [];
  for (const [index, { name: display, address }] of mailboxes.entries()) {
    const comma = index < mailboxes.length - 1 ? ',' : '';
    if (display === '') words.push(`${address}${comma}`);
    else
      words.push(
        ...phrase(display, index === 0 ? MAX_LINE - name.length - 2 : MAX_LINE - 1),
        `<${address}>${comma}`,
      );
  }
  return wordsField(name, words);
}

/** Formats List-Id (RFC 2919 §3): the name of the list as a phrase, and its identifier. */
export function listIdField(name: string, id: string): string {
  const field = 'List-Id';
  const words = name === '' ? [] : quotedPhrase(name, MAX_LINE - field.length - 2);
  return wordsField(field, [...words, `<${id}>`]);
}

/**
 * Formats `value; name=value; …` (RFC 2045 §5.1). A non-ASCII value is encoded by RFC 2231 alone: several programs, Python's
 * `email` among them, would use an ASCII approximation next to it.
 */
export function parameterField(name: string, value: string, parameters: Record<string, string>): string {
  const words = [value, ...Object.entries(parameters).flatMap(([key, text]) => parameter(key, text))];
  return wordsField(
    name,
    words.map((word, index) => (index < words.length - 1 ? `${word};` : word)),
  );
}

/** The words of a display name in a header (RFC 5322 §3.2.5 phrase). */
function phrase(display: string, first: number): string[] {
  return ATOMS.test(display) && !mustBeEncoded(display) ? display.split(' ') : quotedPhrase(display, first);
}

function quotedPhrase(display: string, first: number): string[] {
  return mustBeEncoded(display) ? encodedWords(display, first) : [quotedString(display)];
}

/** Text that looks like an encoded-word would be decoded, so it is encoded. */
function mustBeEncoded(display: string): boolean {
  return !PRINTABLE.test(display) || display.includes('=?') || display.length > MAX_QUOTED;
}

function piecesOf(value: string): Piece[] {
  const pieces: Piece[] = [];
  // Not linear: from each trailing space it would search for a word, so they are removed.
  for (const [, spaces = '', word = ''] of trimTrailingSpaces(value).matchAll(/( *)([^ ]+)/g))
    pieces.push({ spaces: spaces || ' ', word });
  // One space follows the colon, whatever the value begins with.
  if (pieces[0]) pieces[0].spaces = ' ';
  return pieces;
}

function trimTrailingSpaces(value: string): string {
  let end = value.length;
  while (value[end - 1] === ' ') end--;
  return value.slice(0, end);
}

function needsEncoding({ spaces, word }: Piece): boolean {
  return (
    !PRINTABLE.test(word) || word.includes('=?') || word.length > MAX_BARE_WORD || spaces.length > MAX_SPACES
  );
}

/** Joins the pieces. Removes all control characters, so that no value can begin another field. */
function fold(name: string, pieces: readonly Piece[]): string {
  let field = `${name}:`;
  let column = field.length;
  for (const [index, { spaces, word: original }] of pieces.entries()) {
    const word = CONTROL.test(original) ? original.replace(/\p{Cc}/gu, '') : original;
    if (index > 0 && column + spaces.length + word.length > MAX_LINE) {
      field += '\r\n';
      column = 0;
    }
    field += spaces + word;
    column += spaces.length + word.length;
  }
  return field;
}

/** Maximum length of percent-encoded text in one parameter section. */
const MAX_SECTION = 54;

/** A parameter as `name=value` words. */
function parameter(name: string, value: string): string[] {
  // Some programs decode `=?…?=` in quoted strings, too (against RFC 2047 §5).
  if (PRINTABLE.test(value) && value.length <= MAX_QUOTED && !value.includes('=?'))
    return [`${name}=${quotedString(value)}`];
  const sections = [''];
  for (const char of value) {
    const form = percentEncode(char);
    const last = sections.length - 1;
    if ((sections[last]?.length ?? 0) + form.length > MAX_SECTION) sections.push(form);
    else sections[last] += form;
  }
  if (sections.length === 1) return [`${name}*=utf-8''${sections[0]}`];
  return sections.map((section, index) => `${name}*${index}*=${index === 0 ? "utf-8''" : ''}${section}`);
}

/** RFC 2231 §7 attribute-char, except those that old parsers do not support. */
function percentEncode(char: string): string {
  if (/^[A-Za-z0-9._-]$/.test(char)) return char;
  return Buffer.from(char).toString('hex').toUpperCase().replace(/../g, '%$&');
}

/** Of an encoded-word (RFC 2047 §2). */
const MAX_WORD = 75;
const OVERHEAD = '=?utf-8?q??='.length;
/** The minimum length of a first word: one character of four bytes. */
const MIN_WORD = OVERHEAD + 12;

/** Characters that Q encoding does not escape even in a display name (RFC 2047 §5 (3)). */
const LITERAL = /[A-Za-z0-9!*+/-]/;

/**
 * Returns the text as encoded-words (RFC 2047) of at most 75 characters, to be joined by spaces or folds, which decoders
 * remove: in UTF-8, with Q or B, whichever is shorter, and split only between characters.
 * `firstLength`: the maximum length of the first word, so that it fits on the line of the field name.
 */
export function encodedWords(text: string, firstLength = MAX_WORD): string[] {
  const bytes = Buffer.byteLength(text);
  let quotedLength = 0;
  for (const char of text) quotedLength += encodeQ(char).length;
  const usesQ = quotedLength <= Math.ceil(bytes / 3) * 4;

  const words: string[] = [];
  let available = Math.max(Math.min(firstLength, MAX_WORD), MIN_WORD) - OVERHEAD;
  let pending = '';
  let length = 0;
  const finish = () => {
    words.push(usesQ ? `=?utf-8?q?${pending}?=` : `=?utf-8?b?${Buffer.from(pending).toString('base64')}?=`);
    available = MAX_WORD - OVERHEAD;
    pending = '';
    length = 0;
  };
  for (const char of text) {
    const form = usesQ ? encodeQ(char) : char;
    const added = usesQ ? form.length : Buffer.byteLength(char);
    if (length + added > (usesQ ? available : Math.floor(available / 4) * 3)) finish();
    pending += form;
    length += added;
  }
  if (pending !== '') finish();
  return words;
}

function encodeQ(char: string): string {
  if (char === ' ') return '_';
  if (char.length === 1 && LITERAL.test(char)) return char;
  return Buffer.from(char).toString('hex').toUpperCase().replace(/../g, '=$&');
}

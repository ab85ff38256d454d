import { quoted } from './address.ts';
import type { Mailbox } from './content.ts';
import { encodedWords } from './encoded-word.ts';

/**
 * Writes header fields: folded, ASCII, no line over 998 octets (RFC 5322 §2.1.1, §2.2.3), whatever the value.
 * A field is one string, `Name: value`, with CRLF and a blank where it is folded and no line end after it. The
 * one thing that may be beyond ASCII is an address that only SMTPUTF8 hosts take (RFC 6532).
 */

/** RFC 2047 §2 allows 76 where encoded-words stand; RFC 5322's 78 would gain nothing elsewhere. */
const LINE = 76;
/** A word that no fold can break must be encoded well before the hard limit of 998. */
const MAX_BARE_WORD = 900;
const MAX_BLANKS = 60;
/** A quoted-string is not folded; twice this, should all of it need a backslash, still fits a line. */
const MAX_QUOTED = 400;

const CONTROL = /\p{Cc}/u;
const PRINTABLE = /^[ -~]*$/;
/** RFC 5322 §3.2.3 atoms, which a display name may be made of without quotes. */
const ATOMS = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?: [A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/;

/** A word and the blanks before it, at which the line may be folded. */
interface Piece {
  blanks: string;
  word: string;
}

/**
 * A field of free text: Subject, and whatever a caller brings. Only the words from the first to the last that
 * need it are encoded. Controls become blanks.
 */
export function textField(name: string, value: string): string {
  const pieces = piecesOf(PRINTABLE.test(value) ? value : value.replace(/\p{Cc}/gu, ' '));
  const start = pieces.findIndex(needsEncoding);
  if (start === -1) return fold(name, pieces);
  // Overlong blanks can only go inside an encoded-word, so the word before them goes too.
  const first = (pieces[start]?.blanks.length ?? 0) > MAX_BLANKS ? start - 1 : start;
  const last = pieces.findLastIndex(needsEncoding);
  const [head, ...rest] = pieces.slice(first, last + 1);
  const middle = (head?.word ?? '') + rest.map(({ blanks, word }) => blanks + word).join('');
  const words = encodedWords(middle, first === 0 ? LINE - name.length - 2 : LINE - 1);
  const encoded = words.map((word, index) => ({ blanks: (index === 0 && head?.blanks) || ' ', word }));
  return fold(name, [...pieces.slice(0, first), ...encoded, ...pieces.slice(last + 1)]);
}

/** A field of words that stand for themselves (ids, URLs, dates), folded between them, never encoded. */
export function wordsField(name: string, words: readonly string[]): string {
  return fold(
    name,
    words.map((word) => ({ blanks: ' ', word })),
  );
}

/** From, To, Cc, Reply-To (RFC 5322 §3.4). */
export function addressField(name: string, mailboxes: readonly Mailbox[]): string {
  const words: string[] = [];
  for (const [index, { name: display, address }] of mailboxes.entries()) {
    const comma = index < mailboxes.length - 1 ? ',' : '';
    if (display === '') words.push(`${address}${comma}`);
    else
      words.push(...phrase(display, index === 0 ? LINE - name.length - 2 : LINE - 1), `<${address}>${comma}`);
  }
  return wordsField(name, words);
}

/** List-Id (RFC 2919 §3): the list's name as a phrase, and its identifier. */
export function listIdField(name: string, id: string): string {
  const field = 'List-Id';
  const words = name === '' ? [] : quotedPhrase(name, LINE - field.length - 2);
  return wordsField(field, [...words, `<${id}>`]);
}

/**
 * `value; name=value; …` (RFC 2045 §5.1). What is not plain ASCII goes as RFC 2231 asks, with an ASCII stand-in
 * for readers that do not know it.
 */
export function parameterField(name: string, value: string, parameters: Record<string, string>): string {
  const words = [value, ...Object.entries(parameters).flatMap(([key, text]) => parameter(key, text))];
  return wordsField(
    name,
    words.map((word, index) => (index < words.length - 1 ? `${word};` : word)),
  );
}

/** A display name as words that may stand in a header (RFC 5322 §3.2.5 phrase). */
function phrase(display: string, first: number): string[] {
  return ATOMS.test(display) && !mustBeEncoded(display) ? display.split(' ') : quotedPhrase(display, first);
}

function quotedPhrase(display: string, first: number): string[] {
  return mustBeEncoded(display) ? encodedWords(display, first) : [quoted(display)];
}

/** What looks like an encoded-word would be decoded, so it is encoded itself. */
function mustBeEncoded(display: string): boolean {
  return !PRINTABLE.test(display) || display.includes('=?') || display.length > MAX_QUOTED;
}

function piecesOf(value: string): Piece[] {
  const pieces: Piece[] = [];
  // Blanks at the end have no word behind them; the expression would look for it from each of them.
  for (const [, blanks = '', word = ''] of withoutBlanksBehind(value).matchAll(/( *)([^ ]+)/g))
    pieces.push({ blanks: blanks || ' ', word });
  // Whatever blanks the value began with, one follows the colon.
  if (pieces[0]) pieces[0].blanks = ' ';
  return pieces;
}

function withoutBlanksBehind(value: string): string {
  let end = value.length;
  while (value[end - 1] === ' ') end--;
  return value.slice(0, end);
}

function needsEncoding({ blanks, word }: Piece): boolean {
  return (
    !PRINTABLE.test(word) || word.includes('=?') || word.length > MAX_BARE_WORD || blanks.length > MAX_BLANKS
  );
}

/** The last gate: no control character gets past it, so nothing in a value can begin a field of its own. */
function fold(name: string, pieces: readonly Piece[]): string {
  let field = `${name}:`;
  let column = field.length;
  for (const [index, { blanks, word: given }] of pieces.entries()) {
    const word = CONTROL.test(given) ? given.replace(/\p{Cc}/gu, '') : given;
    if (index > 0 && column + blanks.length + word.length > LINE) {
      field += '\r\n';
      column = 0;
    }
    field += blanks + word;
    column += blanks.length + word.length;
  }
  return field;
}

/** Longest stretch of percent-encoded text in one parameter. */
const MAX_SECTION = 54;

/** One parameter as `name=value` words. */
function parameter(name: string, value: string): string[] {
  if (PRINTABLE.test(value) && value.length <= MAX_QUOTED) return [`${name}=${quoted(value)}`];
  const sections = [''];
  for (const char of value) {
    const form = percentForm(char);
    const last = sections.length - 1;
    if ((sections[last]?.length ?? 0) + form.length > MAX_SECTION) sections.push(form);
    else sections[last] += form;
  }
  const standIn = `${name}=${quoted(asciiStandIn(value))}`;
  if (sections.length === 1) return [standIn, `${name}*=utf-8''${sections[0]}`];
  return [
    standIn,
    ...sections.map((section, index) => `${name}*${index}*=${index === 0 ? "utf-8''" : ''}${section}`),
  ];
}

/** RFC 2231 §7 attribute-char, less those that old readers trip over. */
function percentForm(char: string): string {
  if (/^[A-Za-z0-9._-]$/.test(char)) return char;
  return Buffer.from(char).toString('hex').toUpperCase().replace(/../g, '%$&');
}

/** `Größe.pdf` as `Gro_e.pdf`: no beauty, but the ending by which a file is opened stays. */
function asciiStandIn(value: string): string {
  return value
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .replace(/[^ -~]/gu, '_')
    .slice(-MAX_QUOTED);
}

import { decodeText } from './charset.ts';
import type { IncomingLimits } from './limits.ts';
import { decodeBase64 } from './transfer-encoding.ts';

/**
 * Parses header fields (RFC 5322 §2.2) of mail that need not be well-formed: names in lower case, values unfolded. Also
 * parses the field groups of delivery-status and feedback-report parts, which have the same form. Never throws; a line
 * that is not a field is skipped.
 */
export interface Fields {
  /** The first value of a field, '' when it is absent. */
  get(name: string): string;
  all(name: string): readonly string[];
  /** All names, in order of first occurrence. */
  names(): string[];
}

export const NO_FIELDS: Fields = fieldsOf(new Map());

/** `block` is the text of one header block, with LF or CRLF line ends. */
export function readHeaderFields(block: string, limits: IncomingLimits): Fields {
  const found = new Map<string, string[]>();
  let count = 0;
  for (const [name, value] of fieldLines(block, limits.fieldChars, limits.keepsSpaces)) {
    if (++count > limits.headerFields) break;
    const values = found.get(name);
    if (values) values.push(value);
    else found.set(name, [value]);
  }
  return fieldsOf(found);
}

/**
 * The name (lower case) and the unfolded value of each field of a block, in order; values up to `maxLength`. White space is
 * collapsed, so that it cannot make a later regular expression slow, unless `keepsSpaces`.
 */
export function* fieldLines(
  block: string,
  maxLength: number,
  keepsSpaces = false,
): Generator<[name: string, value: string]> {
  let name = '';
  let pieces: string[] = [];
  let length = 0;
  for (const line of linesOf(block)) {
    if (line.startsWith(' ') || line.startsWith('\t')) {
      if (length < maxLength) pieces.push(line.replace('\t', ' '));
      length += line.length;
      continue;
    }
    if (name) yield [name, unfolded(pieces, maxLength, keepsSpaces)];
    const colon = line.slice(0, MAX_NAME_LENGTH + 1).indexOf(':');
    const candidate = colon > 0 ? line.slice(0, colon).trimEnd() : '';
    name = isFieldName(candidate) ? candidate.toLowerCase() : '';
    pieces = [line.slice(colon + 1)];
    length = line.length;
  }
  if (name) yield [name, unfolded(pieces, maxLength, keepsSpaces)];
}

/** RFC 5322 §2.2.3: the white space that begins a line belongs to the value. */
function unfolded(pieces: readonly string[], maxLength: number, keepsSpaces: boolean): string {
  const value = pieces.join('').trim().slice(0, maxLength);
  return (keepsSpaces ? value : value.replaceAll(/\s+/g, ' ')).trim();
}

const MAX_NAME_LENGTH = 100;

/** Whether the text is printable ASCII without spaces and colons (RFC 5322 §3.6.8). */
export function isFieldName(text: string): boolean {
  return text.length > 0 && text.length <= MAX_NAME_LENGTH && /^[\x21-\x39\x3b-\x7e]+$/.test(text);
}

/** Lines without their ends, CRLF or LF. */
export function linesOf(text: string): string[] {
  return text.split('\n').map((line) => (line.endsWith('\r') ? line.slice(0, -1) : line));
}

/** The lookbehind makes the time linear: of a run of such characters only the first one begins a search. */
const ADDRESS = /(?<![^\s<>(),;:"])[^\s<>(),;:"]{1,100}@[^\s<>(),;:"]{1,255}/;

/** The first mail address in a value, '' for none. */
export function firstAddress(value: string): string {
  return ADDRESS.exec(value)?.[0] ?? '';
}

/** All mail addresses in a value, without their source routes (RFC 5321 §C: `@relay.example:a@x.example`). */
export function addressesIn(value: string): string[] {
  return [...value.matchAll(new RegExp(ADDRESS, 'g'))].map(([address]) => address);
}

/** `@a.example,@b.example:c@x.example` is `c@x.example` (RFC 5321 §C). */
export function withoutRoute(address: string): string {
  return address.replace(/^(?:@[^\s@:,]{1,255},?){1,10}:/, '');
}

function fieldsOf(found: ReadonlyMap<string, readonly string[]>): Fields {
  return {
    get: (name) => found.get(name)?.[0] ?? '',
    all: (name) => found.get(name) ?? [],
    names: () => [...found.keys()],
  };
}

/** A value with parameters (RFC 2045 §5.1, RFC 2231), such as `text/plain; charset="x"`. */
export interface ParameterizedValue {
  /** Lower case, without comments. */
  value: string;
  /** Names lower case; of `name` and `name*`, the extended form; continuations joined in order. */
  parameters: ReadonlyMap<string, string>;
  /** The charsets that extended parameters declare. */
  charsets: readonly string[];
}

/** A section of an extended or continued parameter (RFC 2231 §3, §4). */
interface Section {
  /** 0 for a value in one section. */
  number: number;
  /** Whether the value is percent-encoded. */
  isEncoded: boolean;
  value: string;
}

/**
 * Never throws. Of parameters with equal names the last one counts; values in quotes are unquoted and encoded-words
 * decoded. At most 49 parameters are read.
 */
export function readParameters(text: string): ParameterizedValue {
  const [first = '', ...rest] = splitOutsideQuotes(text);
  const parameters = new Map<string, string>();
  const extended = new Map<string, Section[]>();
  for (const piece of rest) {
    const equals = piece.indexOf('=');
    if (equals < 1) continue;
    const name = piece.slice(0, equals).trim().toLowerCase();
    const value = unquote(piece.slice(equals + 1).trim(), FILE_NAMES.has(name));
    const [, base = '', number = '0', encoded = ''] = /^([^*]+)\*(\d{1,3})?(\*)?$/.exec(name) ?? [];
    if (base === '') {
      if (name !== '' && !name.includes('*')) parameters.set(name, decodeWords(value));
      continue;
    }
    const isEncoded = encoded === '*' || !/\d/.test(name.slice(base.length));
    const pieces = extended.get(base) ?? [];
    extended.set(base, [...pieces, { number: Number(number), isEncoded, value }]);
  }
  const charsets: string[] = [];
  for (const [name, pieces] of extended) {
    const { text, charset } = joinSections(pieces);
    parameters.set(name, text);
    charsets.push(charset);
  }
  return { value: (first.trim().split(/[\s(]/, 1)[0] ?? '').toLowerCase(), parameters, charsets };
}

/** Parameters whose values are often written with spaces and without quotes. */
const FILE_NAMES: ReadonlySet<string> = new Set(['filename', 'name']);

/** The first encoded section declares the charset of all (RFC 2231 §4.1): `utf-8'en'%C3%A4`. */
function joinSections(pieces: readonly Section[]): { text: string; charset: string } {
  const [head, ...tail] = pieces.toSorted((a, b) => a.number - b.number);
  if (head === undefined) return { text: '', charset: '' };
  const [, charset = 'utf-8', start = head.value] =
    (head.isEncoded && /^([\w-]*)'[\w-]*'(.*)$/s.exec(head.value)) || [];
  const bytes = [{ ...head, value: start }, ...tail].map(({ isEncoded, value }) =>
    isEncoded ? percentDecoded(value) : Buffer.from(value),
  );
  return { text: decodeText(Buffer.concat(bytes), charset), charset };
}

function percentDecoded(text: string): Buffer {
  return Buffer.from(
    text.replaceAll(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  );
}

function splitOutsideQuotes(text: string): string[] {
  const pieces: string[] = [];
  let quoted = false;
  let from = 0;
  for (let i = 0; i < text.length; i++) {
    const char = text[i];
    if (char === '\\' && quoted) i++;
    else if (char === '"') quoted = !quoted;
    else if (char === ';' && !quoted) {
      pieces.push(text.slice(from, i));
      from = i + 1;
    }
  }
  pieces.push(text.slice(from));
  return pieces.slice(0, 50);
}

function unquote(text: string, mayHaveSpaces: boolean): string {
  if (!text.startsWith('"')) return mayHaveSpaces ? text : (text.split(/\s/, 1)[0] ?? '');
  const end = text.lastIndexOf('"');
  return text.slice(1, end > 0 ? end : undefined).replaceAll(/\\(.)/g, '$1');
}

const ENCODED_WORD =
  /=\?([\w.:+-]{1,40})(?:\*[\w-]{1,20})?\?(?:(b)\?([^?\s]{0,2000})|q\?([^?]{0,2000}))\?=/gi;

/** The charsets that the encoded-words of a value declare. */
export function charsetsOfWords(text: string): string[] {
  return text.includes('=?') ? [...text.matchAll(ENCODED_WORD)].map(([, charset = '']) => charset) : [];
}

/** Charsets with shift states: each encoded-word begins and ends in ASCII (RFC 2047 §3, RFC 1468). */
const STATEFUL = /^(?:iso-2022-|hz-gb-2312)/i;

/**
 * Decodes encoded-words (RFC 2047). Adjacent words of one charset are joined before they are decoded, because some
 * programs split between the bytes of a character; words of a charset with shift states are not.
 */
export function decodeWords(text: string): string {
  if (!text.includes('=?')) return text;
  const joined = text.replaceAll(/\?=\s+=\?/g, '?==?');
  const runs: { charset: string; bytes: Buffer[] }[] = [];
  let out = '';
  const flush = () => {
    for (const { charset, bytes } of runs.splice(0)) out += decodeText(Buffer.concat(bytes), charset);
  };
  let at = 0;
  for (const word of joined.matchAll(ENCODED_WORD)) {
    const [whole, charset = '', base64, encoded = '', quoted = ''] = word;
    if (word.index > at) {
      flush();
      out += joined.slice(at, word.index);
    }
    at = word.index + whole.length;
    const bytes = base64 === undefined ? decodeQ(quoted) : decodeBase64(encoded);
    const last = runs.at(-1);
    if (last?.charset === charset && !STATEFUL.test(charset)) last.bytes.push(bytes);
    else runs.push({ charset, bytes: [bytes] });
  }
  flush();
  return out + joined.slice(at);
}

function decodeQ(data: string): Buffer {
  return Buffer.from(
    data
      .replaceAll('_', ' ')
      .replaceAll(/=([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  );
}

import { decodeText } from './charset.ts';
import type { IncomingLimits } from './limits.ts';

/**
 * Header fields (RFC 5322 §2.2) of mail that need not be well-formed: names lower case, values unfolded. Also
 * reads the field groups of delivery-status and feedback-report parts, which have the same form. Never
 * throws; what is not a field is skipped.
 */
export interface Fields {
  /** First value of a field, '' when it is not there. */
  get(name: string): string;
  all(name: string): readonly string[];
  /** All names, in order of first appearance. */
  names(): string[];
}

export const NO_FIELDS: Fields = fieldsOf(new Map());

/** `block` is the text of one header block, lines ended by LF or CRLF. */
export function readFields(block: string, limits: IncomingLimits): Fields {
  const found = new Map<string, string[]>();
  let count = 0;
  for (const [name, value] of fieldLines(block, limits.fieldChars)) {
    if (++count > limits.headerFields) break;
    const values = found.get(name);
    if (values) values.push(value);
    else found.set(name, [value]);
  }
  return fieldsOf(found);
}

/** Name (lower case) and unfolded value of each field of a block, in order. */
export function* fieldLines(block: string, longest: number): Generator<[name: string, value: string]> {
  let name = '';
  let pieces: string[] = [];
  let length = 0;
  for (const line of linesOf(block)) {
    if (line.startsWith(' ') || line.startsWith('\t')) {
      if (length < longest) pieces.push(line.trim());
      length += line.length;
      continue;
    }
    if (name) yield [name, unfolded(pieces, longest)];
    const colon = line.slice(0, LONGEST_NAME + 1).indexOf(':');
    const candidate = colon > 0 ? line.slice(0, colon).trimEnd() : '';
    name = isFieldName(candidate) ? candidate.toLowerCase() : '';
    pieces = [line.slice(colon + 1).trim()];
    length = line.length;
  }
  if (name) yield [name, unfolded(pieces, longest)];
}

/** Runs of blanks become one, so that no later expression can be made slow by them. */
function unfolded(pieces: readonly string[], longest: number): string {
  return pieces.join(' ').slice(0, longest).replaceAll(/\s+/g, ' ').trim();
}

const LONGEST_NAME = 100;

/** Printable ASCII without blanks (RFC 5322 §3.6.8). */
export function isFieldName(text: string): boolean {
  return text.length > 0 && text.length <= LONGEST_NAME && /^[\x21-\x39\x3b-\x7e]+$/.test(text);
}

/** Lines without their ends; CRLF and LF both end one. */
export function linesOf(text: string): string[] {
  return text.split('\n').map((line) => (line.endsWith('\r') ? line.slice(0, -1) : line));
}

function fieldsOf(found: ReadonlyMap<string, readonly string[]>): Fields {
  return {
    get: (name) => found.get(name)?.[0] ?? '',
    all: (name) => found.get(name) ?? [],
    names: () => [...found.keys()],
  };
}

/** A value with parameters (RFC 2045 §5.1, RFC 2231): `text/plain; charset="x"` and its like. */
export interface Parametrised {
  /** Lower case, without comments. */
  value: string;
  /** Names lower case; continuations joined, percent encoding taken off. */
  parameters: ReadonlyMap<string, string>;
}

export function readParameters(text: string): Parametrised {
  const [first = '', ...rest] = splitOutsideQuotes(text);
  const parameters = new Map<string, string>();
  for (const piece of rest) {
    const equals = piece.indexOf('=');
    if (equals < 1) continue;
    const name = piece.slice(0, equals).trim().toLowerCase();
    if (name === '') continue;
    const value = unquote(piece.slice(equals + 1).trim());
    const star = name.indexOf('*');
    if (star < 0) parameters.set(name, decodeWords(value));
    else {
      const base = name.slice(0, star);
      parameters.set(
        base,
        (parameters.get(base) ?? '') + (name.endsWith('*') ? decodePercent(value) : value),
      );
    }
  }
  return { value: (first.trim().split(/[\s(]/, 1)[0] ?? '').toLowerCase(), parameters };
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

function unquote(text: string): string {
  if (!text.startsWith('"')) return text.split(/\s/, 1)[0] ?? '';
  const end = text.lastIndexOf('"');
  return text.slice(1, end > 0 ? end : undefined).replaceAll(/\\(.)/g, '$1');
}

/** RFC 2231 §4: `utf-8'en'%C3%A4`; the charset stands only in the first piece. */
function decodePercent(text: string): string {
  const [, charset = 'utf-8', encoded = text] = /^([\w-]*)'[\w-]*'(.*)$/s.exec(text) ?? [];
  const bytes = Buffer.from(
    encoded.replaceAll(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  );
  return decodeText(bytes, charset);
}

/** Takes off encoded words (RFC 2047); neighbours of one charset are joined before they are decoded. */
export function decodeWords(text: string): string {
  if (!text.includes('=?')) return text;
  const joined = text.replaceAll(/\?=\s+=\?/g, '?==?');
  const runs: { charset: string; bytes: Buffer[] }[] = [];
  let out = '';
  const flush = () => {
    for (const { charset, bytes } of runs.splice(0)) out += decodeText(Buffer.concat(bytes), charset);
  };
  let at = 0;
  for (const word of joined.matchAll(
    /=\?([\w.:+-]{1,40})(?:\*[\w-]{1,20})?\?([bq])\?([^?\s]{0,2000})\?=/gi,
  )) {
    const [whole, charset = '', encoding = '', data = ''] = word;
    if (word.index > at) {
      flush();
      out += joined.slice(at, word.index);
    }
    at = word.index + whole.length;
    const bytes = encoding.toLowerCase() === 'b' ? Buffer.from(data, 'base64') : decodeQ(data);
    const last = runs.at(-1);
    if (last?.charset === charset) last.bytes.push(bytes);
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

import { type Work, withoutPause } from '../core/concurrency/slices.ts';
import { encodeUtf8 } from '../core/utf8.ts';

/*
 * Selects and applies content transfer encodings (RFC 2045 §6). Whatever the text, the result is ASCII with CRLF line ends
 * and no line over 998 bytes, so that no hop needs 8BITMIME.
 */

export type TransferEncoding = '7bit' | 'quoted-printable' | 'base64';

export interface EncodedBody {
  encoding: TransferEncoding;
  /** Consecutive. */
  chunks: Buffer[];
}

/** RFC 5322 §2.1.1, without CRLF. */
const MAX_LINE = 998;
/** RFC 2045 §6.7 (5) and §6.8. */
const MAX_ENCODED_LINE = 76;
/**
 * base64 is used if more than one byte in three must be escaped. It is shorter from one in six, but Latin text stays
 * readable in quoted-printable, and spam filters penalize unnecessary base64.
 */
const BASE64_SHARE = 3;

const TAB = 9;
const LF = 10;
const CR = 13;
const SPACE = 32;
const EQUALS = 61;
const F = 70;

/** Two hex digits of every byte, as character codes. */
const HEX = Buffer.from('0123456789ABCDEF', 'latin1');
/** Characters whose lines are encoded together. V8 maps and unmaps memory for each string of more than 128 K. */
const PIECE_CHARACTERS = 48 * 1024;
/** 1 for bytes that quoted-printable never escapes, wherever they are in a line. */
const LITERAL = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte > SPACE && byte < 127 && byte !== EQUALS ? 1 : 0,
);

/**
 * Complete lines of a text, or its last line, with CRLF line ends. What was computed for them is kept: the copies of
 * a campaign share most of their lines.
 */
export interface TextLines {
  bytes: Buffer;
  /** They can be sent as 7bit. */
  isSafe: boolean;
  escapes?: number;
  quoted?: Buffer;
}

/** Lines to encode. All line ends become CRLF. */
export function textLines(text: string): TextLines {
  const bytes = encodeUtf8(withCrlf(text));
  return { bytes, isSafe: isSafe(bytes) };
}

/**
 * Encodes text as a MIME body: 7bit if it is safe in transit, else quoted-printable, or base64 if most bytes would be
 * escaped. All line ends become CRLF. `change` is applied to runs of complete lines.
 */
export function encodeText(text: string, change?: (lines: string) => string): EncodedBody {
  return withoutPause(encodeTextInSteps(text, change));
}

/** `encodeText` in steps. */
export function* encodeTextInSteps(text: string, change = (lines: string) => lines): Work<EncodedBody> {
  const lines: TextLines[] = [];
  for (let at = 0; at < text.length; ) {
    const end = lineEnd(text, at + PIECE_CHARACTERS);
    lines.push(textLines(change(text.slice(at, end))));
    at = end;
    yield;
  }
  return yield* encodeLinesInSteps(lines);
}

/** The offset after the first line feed from `at` on; without one, the end of the text. */
export function lineEnd(text: string, at: number): number {
  const end = at < text.length ? text.indexOf('\n', at) : -1;
  return end === -1 ? text.length : end + 1;
}

/** `encodeText` of consecutive lines. */
export function encodeLines(lines: readonly TextLines[]): EncodedBody {
  return withoutPause(encodeLinesInSteps(lines));
}

function* encodeLinesInSteps(lines: readonly TextLines[]): Work<EncodedBody> {
  if (lines.every((each) => each.isSafe))
    return { encoding: '7bit', chunks: lines.map((each) => each.bytes) };
  const length = lines.reduce((sum, { bytes }) => sum + bytes.length, 0);
  let escapes = 0;
  for (const each of lines) {
    escapes += escapesIn(each);
    yield;
  }
  if (escapes * BASE64_SHARE > length) {
    const bytes = Buffer.concat(lines.map((each) => each.bytes));
    return { encoding: 'base64', chunks: [wrapBase64(bytes.toString('base64'))] };
  }
  const chunks: Buffer[] = [];
  for (const each of lines) {
    chunks.push(quotedLines(each));
    yield;
  }
  return { encoding: 'quoted-printable', chunks };
}

/**
 * Encodes the base64 content of a file that is probably text, so that exactly its bytes are decoded: 7bit if that is safe in
 * transit, else quoted-printable if it is shorter than base64. Line ends other than CRLF are escaped.
 */
export function encodeFile(base64: string): EncodedBody {
  const bytes = Buffer.from(base64, 'base64');
  const bareLineEnds = countBareLineEnds(bytes);
  if (bareLineEnds === 0 && isSafe(bytes)) return { encoding: '7bit', chunks: [bytes] };
  const escapes = countEscapes(bytes) + bareLineEnds;
  // Without encoding: each escape adds two bytes.
  if (bytes.length + 2 * escapes < base64.length) {
    const quoted = quotedPrintable(bytes, escapes);
    if (quoted.length < base64.length) return { encoding: 'quoted-printable', chunks: [quoted] };
  }
  return { encoding: 'base64', chunks: [wrapBase64(base64)] };
}

function escapesIn(lines: TextLines): number {
  lines.escapes ??= countEscapes(lines.bytes);
  return lines.escapes;
}

function quotedLines(lines: TextLines): Buffer {
  lines.quoted ??= quotedPrintable(lines.bytes, escapesIn(lines));
  return lines.quoted;
}

/** Splits base64 text without line breaks into lines joined by CRLF (RFC 2045 §6.8), without decoding it. */
export function wrapBase64(base64: string): Buffer {
  const source = Buffer.from(base64, 'latin1');
  const breaks = Math.max(0, Math.ceil(source.length / MAX_ENCODED_LINE) - 1);
  const body = Buffer.allocUnsafe(source.length + 2 * breaks);
  let at = source.copy(body, 0, 0, MAX_ENCODED_LINE);
  for (let from = MAX_ENCODED_LINE; from < source.length; from += MAX_ENCODED_LINE) {
    body[at++] = CR;
    body[at++] = LF;
    at += source.copy(body, at, from, from + MAX_ENCODED_LINE);
  }
  return body;
}

/** The text with CRLF line ends. Only plain strings are replaced, which V8 does without a regular expression. */
function withCrlf(text: string): string {
  const lines = text.includes('\r') ? text.replaceAll('\r\n', '\n').replaceAll('\r', '\n') : text;
  return lines.replaceAll('\n', '\r\n');
}

const UNSAFE_LINES = ['From ', '--=_'];

/**
 * Whether bytes with CRLF line ends can be sent as 7bit. Not safe: non-ASCII bytes, control
 * characters, overlong lines, lines that mbox storage would change (`From `), and lines that could be mistaken for a
 * boundary (`--=_`). No search for each line: most bodies are safe, and long.
 */
function isSafe(bytes: Buffer): boolean {
  if (hasUnsafeByte(bytes)) return false;
  for (const start of UNSAFE_LINES)
    if (bytes.toString('latin1', 0, start.length) === start || bytes.includes(`\n${start}`)) return false;
  return !hasOverlongLine(bytes);
}

/** In each byte of a word: its highest bit, and what is subtracted and added so that only safe bytes do not set it. */
const HIGH_BITS = 0x80808080;
const BELOW_SPACE = 0x20202020;
const ABOVE_TILDE = 0x01010101;

/**
 * Whether there is a byte that is not printable ASCII, a tab or a line end. Reads four bytes at a time: borrows and
 * carries only come from bytes that have set their bit already.
 */
function hasUnsafeByte(bytes: Buffer): boolean {
  const { buffer, byteOffset, length } = bytes;
  const isAligned = byteOffset % 4 === 0;
  const words = isAligned ? new Int32Array(buffer, byteOffset, length >> 2) : new Int32Array(0);
  for (let n = 0; n < words.length; n++) {
    const word = words[n] ?? 0;
    if (((word | (word - BELOW_SPACE) | (word + ABOVE_TILDE)) & HIGH_BITS) === 0) continue;
    for (let at = 4 * n; at < 4 * n + 4; at++) if (isUnsafe(bytes[at] ?? 0)) return true;
  }
  for (let at = 4 * words.length; at < length; at++) if (isUnsafe(bytes[at] ?? 0)) return true;
  return false;
}

function isUnsafe(byte: number): boolean {
  return (byte < SPACE && byte !== LF && byte !== CR && byte !== TAB) || byte > 126;
}

/** Looks for a line end in each range that a line may have at most, from its end backwards. */
function hasOverlongLine(bytes: Buffer): boolean {
  let lineStart = 0;
  while (bytes.length - lineStart > MAX_LINE) {
    const end = bytes.lastIndexOf(LF, lineStart + MAX_LINE + 1);
    if (end < lineStart) return true;
    lineStart = end + 1;
  }
  return false;
}

/** Carriage returns and line feeds that are no CRLF. */
function countBareLineEnds(bytes: Buffer): number {
  let count = 0;
  for (let at = bytes.indexOf(LF); at !== -1; at = bytes.indexOf(LF, at + 1))
    if (bytes[at - 1] !== CR) count++;
  for (let at = bytes.indexOf(CR); at !== -1; at = bytes.indexOf(CR, at + 1))
    if (bytes[at + 1] !== LF) count++;
  return count;
}

/** Bytes that quoted-printable must escape, except at line ends. */
function countEscapes(bytes: Buffer): number {
  let escapes = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0;
    if (LITERAL[byte] === 1 || byte === SPACE) continue;
    if (byte !== LF && byte !== CR && byte !== TAB) escapes++;
  }
  return escapes;
}

function isFrom(bytes: Buffer, at: number): boolean {
  return bytes[at] === F && bytes.toString('latin1', at, at + 5) === 'From ';
}

/** Encodes bytes as quoted-printable (RFC 2045 §6.7). CRLF is a line end; other carriage returns and line feeds are escaped. */
function quotedPrintable(bytes: Buffer, escapes: number): Buffer {
  const body = Buffer.allocUnsafe(maxQuotedPrintable(bytes, escapes));
  let at = 0;
  let column = 0;
  for (let from = 0; from < bytes.length; from++) {
    const byte = bytes[from] ?? 0;
    // The common case: a literal byte below the line limit.
    if (LITERAL[byte] === 1 && byte !== F && column < MAX_ENCODED_LINE - 1) {
      body[at++] = byte;
      column++;
      continue;
    }
    if (byte === CR && bytes[from + 1] === LF) {
      body[at++] = CR;
      body[at++] = LF;
      from++;
      column = 0;
      continue;
    }
    const ends = from + 1 === bytes.length || (bytes[from + 1] === CR && bytes[from + 2] === LF);
    const literal = LITERAL[byte] === 1 ? !isFrom(bytes, from) : (byte === SPACE || byte === TAB) && !ends;
    const width = literal ? 1 : 3;
    if (column + width > (ends ? MAX_ENCODED_LINE : MAX_ENCODED_LINE - 1)) {
      body[at++] = EQUALS;
      body[at++] = CR;
      body[at++] = LF;
      column = 0;
    }
    if (literal) {
      body[at++] = byte;
    } else {
      body[at++] = EQUALS;
      body[at++] = HEX[byte >> 4] ?? 0;
      body[at++] = HEX[byte & 15] ?? 0;
    }
    column += width;
  }
  return body.subarray(0, at);
}

/** Two more bytes for each escape, for each blank at a line end and for each `From `, and three after every 73 bytes. */
function maxQuotedPrintable({ length }: Buffer, escapes: number): number {
  const encoded = length + 2 * escapes + 2 * Math.ceil(length / 3) + 2;
  return encoded + 3 * Math.ceil(encoded / 73);
}

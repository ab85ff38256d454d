/** Decodes the content transfer encodings of received mail (RFC 2045 §6, and uuencode), which need not be well-formed. */

const TAB = 0x09;
const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;
const EQUALS = 0x3d;

/**
 * Decodes base64 (RFC 2045 §6.8). Characters outside the alphabet are skipped, and text after inner padding is decoded
 * as well: some programs encode in pieces and concatenate the results. Linear in the length.
 */
export function decodeBase64(text: string): Buffer {
  const padding = text.indexOf('=');
  if (padding < 0 || !/[A-Za-z0-9+/]/.test(text.slice(padding))) return Buffer.from(text, 'base64');
  const pieces = text.split(/=+/).map((piece) => Buffer.from(piece, 'base64'));
  return Buffer.concat(pieces);
}

/** Decodes quoted-printable (RFC 2045 §6.7), at most `maxLength` bytes. An `=` that begins no escape is literal. */
export function decodeQuotedPrintable(encoded: Buffer, maxLength: number): Buffer {
  const out = Buffer.alloc(Math.min(encoded.length, maxLength));
  let length = 0;
  for (let i = 0; i < encoded.length && length < maxLength; i++) {
    const byte = encoded[i] ?? 0;
    if (byte !== EQUALS) {
      out[length++] = byte;
      continue;
    }
    const softBreak = softBreakLength(encoded, i + 1);
    const value = softBreak ? Number.NaN : hexByte(encoded[i + 1], encoded[i + 2]);
    if (softBreak) i += softBreak;
    else if (Number.isNaN(value)) out[length++] = byte;
    else {
      out[length++] = value;
      i += 2;
    }
  }
  return out.subarray(0, length);
}

/** The length of a soft line break after `=`, with trailing white space; 0 when there is none. */
function softBreakLength(bytes: Buffer, from: number): number {
  let at = from;
  while (at - from < 80 && (bytes[at] === SPACE || bytes[at] === TAB || bytes[at] === CR)) at++;
  return bytes[at] === LF ? at - from + 1 : 0;
}

function hexByte(high: number | undefined, low: number | undefined): number {
  if (high === undefined || low === undefined) return Number.NaN;
  const digits = String.fromCharCode(high, low);
  return /^[0-9a-f]{2}$/i.test(digits) ? Number.parseInt(digits, 16) : Number.NaN;
}

/**
 * Decodes uuencode (POSIX `uuencode`), at most `maxLength` bytes: the lines between `begin` and `end`, each with its length
 * in the first character.
 */
export function decodeUuencode(encoded: Buffer, maxLength: number): Buffer {
  const out = Buffer.alloc(Math.min(encoded.length, maxLength));
  let length = 0;
  let hasBegun = false;
  for (const line of encoded.toString('latin1').split('\n')) {
    if (!hasBegun) {
      hasBegun = /^begin [0-7]{3,4} /.test(line);
      continue;
    }
    const bytes = sixBits(line, 0);
    if (bytes === 0 || line.startsWith('end')) break;
    for (let n = 0; n < bytes && length < out.length; n++) {
      // Byte n is in the characters at 4 of every 3 bytes, most significant bits first.
      const at = 1 + 4 * Math.trunc(n / 3) + (n % 3);
      const shift = 2 * (n % 3) + 2;
      out[length++] = ((sixBits(line, at) << shift) | (sixBits(line, at + 1) >> (6 - shift))) & 0xff;
    }
  }
  return out.subarray(0, length);
}

/** A character stands for its distance from the space, of which some programs write a grave accent. */
function sixBits(line: string, at: number): number {
  return at < line.length ? (line.charCodeAt(at) - SPACE) & 0x3f : 0;
}

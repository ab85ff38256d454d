/**
 * Body encodings (RFC 2045 §6): whatever the text, what leaves here is ASCII, CRLF line ends, no line over 998
 * octets, so that no 8BITMIME is needed on the way. Owns the choice of encoding; knows nothing of headers.
 */
export type TransferEncoding = '7bit' | 'quoted-printable' | 'base64';

export interface EncodedBody {
  encoding: TransferEncoding;
  body: Buffer;
}

/** RFC 5322 §2.1.1, without CRLF. */
const MAX_LINE = 998;
/** RFC 2045 §6.7 (5) and §6.8. */
const MAX_ENCODED_LINE = 76;
/**
 * Above one octet in three to escape, base64. It is shorter from one in six on, but text in Latin letters stays
 * readable in quoted-printable, and filters look askance at base64 where it is not needed.
 */
const BASE64_SHARE = 3;

const TAB = 9;
const LF = 10;
const CR = 13;
const SPACE = 32;
const DASH = 45;
const EQUALS = 61;
const F = 70;

/** Two hex digits of every octet, as character codes. */
const HEX = Buffer.from('0123456789ABCDEF', 'latin1');
/** 1 for what quoted-printable writes as it is, wherever it stands in a line. */
const LITERAL = Uint8Array.from({ length: 256 }, (_, octet) =>
  octet > SPACE && octet < 127 && octet !== EQUALS ? 1 : 0,
);

/**
 * Text of any kind as a MIME body: as it is when it is safe on the way, else quoted-printable, or base64
 * where most of it would be escapes. Line ends of every kind become CRLF.
 */
export function encodeText(text: string): EncodedBody {
  const bytes = Buffer.from(text.replace(/\r\n?|\n/g, '\r\n'));
  const { escapes, plain } = survey(bytes);
  if (plain) return { encoding: '7bit', body: bytes };
  if (escapes * BASE64_SHARE > bytes.length) {
    return { encoding: 'base64', body: wrapBase64(bytes.toString('base64')) };
  }
  return { encoding: 'quoted-printable', body: quotedPrintable(bytes) };
}

/** Base64 text without line breaks, cut into lines joined by CRLF (RFC 2045 §6.8). Does not decode it. */
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

interface Survey {
  /** Octets that quoted-printable must escape in any place but a line's end. */
  escapes: number;
  /** May go as 7bit. */
  plain: boolean;
}

/**
 * One look over a text with CRLF line ends. Not plain: octets beyond ASCII, controls, overlong lines, lines that
 * mailboxes on the way would change (`From `), and lines that could be taken for one of our boundaries (`--=_`).
 */
function survey(bytes: Buffer): Survey {
  let escapes = 0;
  let plain = true;
  let lineStart = 0;
  for (let at = 0; at < bytes.length; at++) {
    const octet = bytes[at] ?? 0;
    if (LITERAL[octet] === 1 || octet === SPACE) continue;
    if (octet === LF) {
      plain &&= at - lineStart <= MAX_LINE + 1 && !isTouchy(bytes, lineStart);
      lineStart = at + 1;
    } else if (octet === EQUALS) {
      escapes++;
    } else if (octet !== CR && octet !== TAB) {
      escapes++;
      plain = false;
    }
  }
  plain &&= bytes.length - lineStart <= MAX_LINE && !isTouchy(bytes, lineStart);
  return { escapes, plain };
}

/** `From ` or `--=_` begin here. */
function isTouchy(bytes: Buffer, at: number): boolean {
  return isFrom(bytes, at) || (bytes[at] === DASH && bytes.toString('latin1', at, at + 4) === '--=_');
}

function isFrom(bytes: Buffer, at: number): boolean {
  return bytes[at] === F && bytes.toString('latin1', at, at + 5) === 'From ';
}

/** RFC 2045 §6.7 of octets with CRLF line ends. */
function quotedPrintable(bytes: Buffer): Buffer {
  // Three for an octet that is escaped, and a soft line break's three for every 73 written.
  const body = Buffer.allocUnsafe(4 * bytes.length);
  let at = 0;
  let column = 0;
  for (let from = 0; from < bytes.length; from++) {
    const octet = bytes[from] ?? 0;
    // Most of any text, and short of the limit, where nothing needs a second look.
    if (LITERAL[octet] === 1 && octet !== F && column < MAX_ENCODED_LINE - 1) {
      body[at++] = octet;
      column++;
      continue;
    }
    if (octet === CR) {
      body[at++] = CR;
      body[at++] = LF;
      from++;
      column = 0;
      continue;
    }
    const ends = from + 1 === bytes.length || bytes[from + 1] === CR;
    const literal = LITERAL[octet] === 1 ? !isFrom(bytes, from) : (octet === SPACE || octet === TAB) && !ends;
    const width = literal ? 1 : 3;
    if (column + width > (ends ? MAX_ENCODED_LINE : MAX_ENCODED_LINE - 1)) {
      body[at++] = EQUALS;
      body[at++] = CR;
      body[at++] = LF;
      column = 0;
    }
    if (literal) {
      body[at++] = octet;
    } else {
      body[at++] = EQUALS;
      body[at++] = HEX[octet >> 4] ?? 0;
      body[at++] = HEX[octet & 15] ?? 0;
    }
    column += width;
  }
  return body.subarray(0, at);
}

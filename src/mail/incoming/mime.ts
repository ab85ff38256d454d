import { decodeLines, decodeText } from './charset.ts';
import { type Fields, linesOf, readHeaderFields, readParameters } from './fields.ts';
import type { IncomingLimits } from './limits.ts';
import { decodeBase64, decodeQuotedPrintable, decodeUuencode } from './transfer-encoding.ts';

/**
 * Parses a mail into its MIME parts (RFC 2045, 2046), within limits: bodies are slices of the mail until their text is
 * requested, an embedded message is a leaf, and malformed structure results in fewer parts, never in an error. Time is
 * at most `depth` passes over the bytes.
 */
export interface Part {
  fields: Fields;
  /** `type/subtype` in lower case; `text/plain` by default. */
  type: string;
  parameters: ReadonlyMap<string, string>;
  /** File name of Content-Disposition or Content-Type, '' for none. */
  filename: string;
  /** Still in its transfer encoding. */
  body: Buffer;
  /** The parts of a multipart, else empty. */
  children: readonly Part[];
}

/** Parses a whole mail. Accepts bare CR as line end, and skips a leading mbox "From " line. */
export function readMail(raw: Buffer, limits: IncomingLimits): Part {
  const bytes = normalizeLineEnds(raw.subarray(0, limits.mailBytes));
  const budget = { parts: limits.parts };
  return readPart(bytes.subarray(afterPreamble(bytes)), limits, budget, 0);
}

/** All leaves, in order. */
export function* leavesOf(part: Part): Generator<Part> {
  if (part.children.length === 0) yield part;
  else for (const child of part.children) yield* leavesOf(child);
}

/** The body with its transfer encoding decoded, at most `maxLength` bytes; unchanged if the encoding is unknown. */
export function contentOf(part: Part, maxLength: number): Buffer {
  switch (encodingOf(part)) {
    case 'base64': {
      const encoded = part.body.subarray(0, Math.ceil(maxLength / 3) * 4 + Math.ceil(maxLength / 16));
      return decodeBase64(encoded.toString('latin1')).subarray(0, maxLength);
    }
    case 'quoted-printable':
      return decodeQuotedPrintable(part.body.subarray(0, maxLength * 3), maxLength);
    case 'uuencode':
      return decodeUuencode(part.body.subarray(0, maxLength * 2 + 1024), maxLength);
    default:
      return part.body.subarray(0, maxLength);
  }
}

/** How the body of a part is encoded, null: an encoding that is not supported. */
export function encodingOf(part: Part): 'identity' | 'base64' | 'quoted-printable' | 'uuencode' | null {
  const declared = part.fields.get('content-transfer-encoding').trim().toLowerCase();
  if (declared.startsWith('base64')) return 'base64';
  if (declared.startsWith('quoted-printable')) return 'quoted-printable';
  if (/^(?:x-)?uu(?:encode)?$|^x-uue$/.test(declared)) return 'uuencode';
  return /^(?:(?:7|8)[ -]?bits?|binary|none)?(?:[\s;(]|$)/.test(declared) ? 'identity' : null;
}

/** The body as text with LF line ends, of at most `maxLength` bytes. */
export function textOf(part: Part, maxLength: number): string {
  const charset = part.parameters.get('charset') ?? null;
  return decodeText(contentOf(part, maxLength), charset).replaceAll('\r\n', '\n').replaceAll('\r', '\n');
}

/** The header block at the start of `bytes`, and the offset of the body. */
export function readHeader(bytes: Buffer, limits: IncomingLimits): { fields: Fields; bodyAt: number } {
  const { headerEnd, bodyAt } = findBody(bytes, limits.headerBytes);
  const block = decodeLines(bytes.subarray(0, headerEnd));
  return { fields: readHeaderFields(block, limits), bodyAt };
}

/** `defaultType`: the type of a part without Content-Type (RFC 2046 §5.1.5). */
function readPart(
  bytes: Buffer,
  limits: IncomingLimits,
  budget: { parts: number },
  depth: number,
  defaultType = 'text/plain',
): Part {
  budget.parts -= 1;
  const { fields, bodyAt } = readHeader(bytes, limits);
  const { value, parameters } = readParameters(fields.get('content-type'));
  const type = value.includes('/') ? value : defaultType;
  const body = bytes.subarray(bodyAt);
  const disposition = readParameters(fields.get('content-disposition')).parameters;
  const children = type.startsWith('multipart/') && depth < limits.depth ? readChildren() : [];
  const filename = disposition.get('filename') ?? parameters.get('name') ?? '';
  return { fields, type, parameters, filename, body, children };

  function readChildren(): Part[] {
    const parts: Part[] = [];
    const declared = parameters.get('boundary') ?? '';
    const sections = [...sectionsOf(body, declared, budget.parts)];
    // After manual editing or a gateway, the declared boundary sometimes differs from the actual one.
    if (sections.length === 0) sections.push(...sectionsOf(body, guessBoundary(body), budget.parts));
    const childType = type === 'multipart/digest' ? 'message/rfc822' : 'text/plain';
    for (const section of sections) {
      if (budget.parts <= 0) break;
      parts.push(readPart(section, limits, budget, depth + 1, childType));
    }
    return parts;
  }
}

/** The sections between the delimiter lines of a multipart body (RFC 2046 §5.1.1); the last delimiter may be missing. */
function* sectionsOf(body: Buffer, boundary: string, maxSections: number): Generator<Buffer> {
  if (boundary === '') return;
  let count = 0;
  const mark = Buffer.from(`--${boundary}`, 'latin1');
  let from = -1;
  for (let at = body.indexOf(mark); at >= 0; at = body.indexOf(mark, at + mark.length)) {
    if (at > 0 && body[at - 1] !== LF) continue;
    const delimiter = delimiterEnd(body, at + mark.length);
    if (!delimiter) continue;
    if (from >= 0) {
      yield body.subarray(from, beforeLineEnd(body, at, from));
      count++;
    }
    if (delimiter.last || count >= maxSections) return;
    from = delimiter.end;
  }
  if (from >= 0) yield body.subarray(from);
}

/** The end of a delimiter line, or null when it belongs to a longer boundary or is ordinary text. */
function delimiterEnd(body: Buffer, from: number): { end: number; last: boolean } | null {
  const last = body[from] === HYPHEN && body[from + 1] === HYPHEN;
  let at = last ? from + 2 : from;
  while (body[at] === SPACE || body[at] === TAB || body[at] === CR) at++;
  if (at >= body.length) return { end: body.length, last };
  return body[at] === LF ? { end: at + 1, last } : null;
}

function beforeLineEnd(body: Buffer, at: number, from: number): number {
  const end = at - (body[at - 2] === CR ? 2 : 1);
  return Math.max(end, from);
}

/** The boundary of a multipart that does not declare it: its first line that begins with `--`. */
function guessBoundary(body: Buffer): string {
  const lines = linesOf(body.subarray(0, 4096).toString('latin1'));
  const line = lines.find((line) => /^--\S.{2,100}$/.test(line));
  return line?.slice(2).trimEnd() ?? '';
}

const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;
const TAB = 0x09;
const HYPHEN = 0x2d;

/** The first empty line ends the header; a header that is too long ends at the limit. */
function findBody(bytes: Buffer, maxLength: number): { headerEnd: number; bodyAt: number } {
  let line = 0;
  while (line < bytes.length && line < maxLength) {
    const end = bytes.indexOf(LF, line);
    const next = end < 0 ? bytes.length : end + 1;
    if (end === line || (end === line + 1 && bytes[line] === CR)) return { headerEnd: line, bodyAt: next };
    line = next;
  }
  const headerEnd = Math.min(line, maxLength);
  return { headerEnd, bodyAt: Math.min(line, bytes.length) };
}

function normalizeLineEnds(bytes: Buffer): Buffer {
  if (bytes.includes(LF) || !bytes.includes(CR)) return bytes;
  const copy = Buffer.from(bytes);
  for (let i = 0; i < copy.length; i++) if (copy[i] === CR) copy[i] = LF;
  return copy;
}

/** Skips empty lines and an mbox separator before the first field. */
function afterPreamble(bytes: Buffer): number {
  let at = 0;
  while (bytes[at] === LF || bytes[at] === CR) at++;
  const start = bytes.toString('latin1', at, at + 100);
  // Not the field of RFC 5322 §4.5.3, with spaces in front of its colon.
  if (!/^>?From (?![ \t]*:)/.test(start)) return at;
  const end = bytes.indexOf(LF, at);
  return end < 0 ? bytes.length : end + 1;
}

import { decodeBase64 } from './base64.ts';
import { decodeLines, decodeText } from './charset.ts';
import { type Fields, linesOf, readFields, readParameters } from './fields.ts';
import type { IncomingLimits } from './limits.ts';

/**
 * Takes a mail apart into its MIME parts (RFC 2045, 2046), within limits and without trusting it: bodies stay
 * slices of the mail until someone asks for their text, a message inside a message is a leaf, and broken
 * structure gives fewer parts, never an error. Work is at most `depth` passes over the bytes.
 */
export interface Part {
  fields: Fields;
  /** Lower case `type/subtype`; `text/plain` when nothing is said. */
  type: string;
  parameters: ReadonlyMap<string, string>;
  /** File name of Content-Disposition or Content-Type, '' when none. */
  filename: string;
  /** As it stands in the mail, transfer encoding still on. */
  body: Buffer;
  /** Of a multipart; else empty. */
  children: readonly Part[];
}

/** Reads a whole mail. CR alone as line end and a leading mbox "From " line are put right. */
export function readMail(raw: Buffer, limits: IncomingLimits): Part {
  const bytes = withLineFeeds(raw.subarray(0, limits.mailBytes));
  const budget = { parts: limits.parts };
  return readPart(bytes.subarray(afterPreamble(bytes)), limits, budget, 0);
}

/** Every leaf, in order. */
export function* leavesOf(part: Part): Generator<Part> {
  if (part.children.length === 0) yield part;
  else for (const child of part.children) yield* leavesOf(child);
}

/** The body with its transfer encoding taken off, at most `longest` bytes. */
export function contentOf(part: Part, longest: number): Buffer {
  const encoding = part.fields.get('content-transfer-encoding').trim().toLowerCase();
  if (encoding.startsWith('base64')) {
    const encoded = part.body.subarray(0, Math.ceil(longest / 3) * 4 + Math.ceil(longest / 16));
    return decodeBase64(encoded.toString('latin1')).subarray(0, longest);
  }
  if (encoding.startsWith('quoted-printable'))
    return decodeQuotedPrintable(part.body.subarray(0, longest * 3), longest);
  return part.body.subarray(0, longest);
}

/** The body as text, lines ended by LF. */
export function textOf(part: Part, longest: number): string {
  const charset = part.parameters.get('charset') ?? null;
  return decodeText(contentOf(part, longest), charset).replaceAll('\r\n', '\n').replaceAll('\r', '\n');
}

/** The header block at the start of `bytes`, and where the body begins. */
export function readHeader(bytes: Buffer, limits: IncomingLimits): { fields: Fields; bodyAt: number } {
  const { headerEnd, bodyAt } = findBody(bytes, limits.headerBytes);
  const block = decodeLines(bytes.subarray(0, headerEnd));
  return { fields: readFields(block, limits), bodyAt };
}

/** `defaultType`: of a part that names none (RFC 2046 §5.1.5). */
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
    const named = parameters.get('boundary') ?? '';
    const sections = [...sectionsOf(body, named, budget.parts)];
    // Retyped by hand or by a gateway, the boundary named is sometimes not the one used.
    if (sections.length === 0) sections.push(...sectionsOf(body, guessBoundary(body), budget.parts));
    const childType = type === 'multipart/digest' ? 'message/rfc822' : 'text/plain';
    for (const section of sections) {
      if (budget.parts <= 0) break;
      parts.push(readPart(section, limits, budget, depth + 1, childType));
    }
    return parts;
  }
}

/** What stands between the delimiter lines of a multipart body (RFC 2046 §5.1.1); the end may be missing. */
function* sectionsOf(body: Buffer, boundary: string, most: number): Generator<Buffer> {
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
    if (delimiter.last || count >= most) return;
    from = delimiter.end;
  }
  if (from >= 0) yield body.subarray(from);
}

/** Where the line of a delimiter ends, or null when it is a longer boundary's or ordinary text. */
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

/** A multipart that does not name its boundary: its first line that begins with `--` is one. */
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

/** The first empty line ends the header; one that is too long ends at the limit. */
function findBody(bytes: Buffer, longest: number): { headerEnd: number; bodyAt: number } {
  let line = 0;
  while (line < bytes.length && line < longest) {
    const end = bytes.indexOf(LF, line);
    const next = end < 0 ? bytes.length : end + 1;
    if (end === line || (end === line + 1 && bytes[line] === CR)) return { headerEnd: line, bodyAt: next };
    line = next;
  }
  const headerEnd = Math.min(line, longest);
  return { headerEnd, bodyAt: Math.min(line, bytes.length) };
}

function withLineFeeds(bytes: Buffer): Buffer {
  if (bytes.includes(LF) || !bytes.includes(CR)) return bytes;
  const copy = Buffer.from(bytes);
  for (let i = 0; i < copy.length; i++) if (copy[i] === CR) copy[i] = LF;
  return copy;
}

/** Skips empty lines and an mbox separator before the first field. */
function afterPreamble(bytes: Buffer): number {
  let at = 0;
  while (bytes[at] === LF || bytes[at] === CR) at++;
  const start = bytes.subarray(at, at + 6).toString('latin1');
  if (!start.startsWith('From ') && start !== '>From ') return at;
  const end = bytes.indexOf(LF, at);
  return end < 0 ? bytes.length : end + 1;
}

function decodeQuotedPrintable(encoded: Buffer, longest: number): Buffer {
  const out = Buffer.alloc(Math.min(encoded.length, longest));
  let length = 0;
  for (let i = 0; i < encoded.length && length < longest; i++) {
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

const EQUALS = 0x3d;

/** Blanks and the line end after `=`; 0 when the line goes on. */
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

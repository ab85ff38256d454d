/*
 * Splits a stream into records: CSV (RFC 4180) or one JSON value per line. Reading needs memory for one chunk and one
 * record, and can continue at the end of any record. A damaged record does not affect the rest of the file: with an unclosed
 * quote only its line is rejected.
 */

/** A position at which an import can continue. */
export interface StreamPosition {
  /** Bytes before it. */
  byte: number;
  /** Lines before it. */
  line: number;
}

export interface ImportRecord {
  /** Line number, from 1. */
  line: number;
  /** Without its line end; '' when there is a fault. */
  text: string;
  /** Why it cannot be parsed, or null. */
  fault: string | null;
  /** Position after it. */
  end: StreamPosition;
}

export const BEGINNING: StreamPosition = { byte: 0, line: 0 };

/** Maximum length of a record, bytes. */
export const MAX_RECORD = 256 * 1024;
const TOO_LONG = `is longer than ${MAX_RECORD} bytes; is a quote not closed?`;
const NOT_CLOSED = 'a quote is not closed';
const NOT_UTF8 = 'is not valid UTF-8';

const LF = 0x0a;
const CR = 0x0d;
const QUOTE = 0x22;
const BOM = Buffer.from([0xef, 0xbb, 0xbf]);

/**
 * Minimum number of bytes that are split together, except at the end: an incomplete record is scanned from its beginning
 * each time, which must not happen for every byte.
 */
const MIN_PUSHED = 16 * 1024;

/** Yields records as they become complete, without blank ones. `bytes` begins at `start`. */
export async function* readRecords(
  bytes: AsyncIterable<Buffer>,
  cut: Cutter,
  start: StreamPosition = BEGINNING,
): AsyncGenerator<ImportRecord[]> {
  const push = createSplitter(cut, start);
  let pending: Buffer[] = [];
  let size = 0;
  for await (const chunk of bytes) {
    pending.push(chunk);
    size += chunk.length;
    if (size < MIN_PUSHED) continue;
    yield push(Buffer.concat(pending), false);
    pending = [];
    size = 0;
  }
  yield push(Buffer.concat(pending), true);
}

/** Finds the end of the record that begins at `from`: the first byte after it. Null: not within these bytes. */
export type Cutter = (
  bytes: Buffer,
  from: number,
  isLast: boolean,
) => { end: number; fault: string | null } | null;

/** Returns a function that takes the chunks in order and returns the complete records. */
export function createSplitter(cut: Cutter, start: StreamPosition) {
  let rest: Buffer = Buffer.alloc(0);
  let position = start;
  /** Inside a line that is too long, which is discarded. */
  let skipping = false;

  return (chunk: Buffer, isLast: boolean): ImportRecord[] => {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    const base = position.byte;
    const records: ImportRecord[] = [];
    let at = base === 0 && bytes.subarray(0, BOM.length).equals(BOM) ? BOM.length : 0;
    while (at < bytes.length) {
      let found = skipping ? null : cut(bytes, at, isLast);
      if (found === null && !skipping && !isLast && bytes.length - at <= MAX_RECORD) break;
      if (found === null || found.end - at > MAX_RECORD) {
        const lineEnd = bytes.indexOf(LF, at);
        skipping = lineEnd === -1 && !isLast;
        found = { end: lineEnd === -1 ? bytes.length : lineEnd + 1, fault: TOO_LONG };
      }
      const end = { byte: base + found.end, line: position.line };
      if (!skipping) {
        end.line += linesIn(bytes, at, found.end);
        const record = { line: position.line + 1, ...readText(bytes, at, found), end };
        if (record.fault !== null || record.text.trim() !== '') records.push(record);
      }
      position = end;
      at = found.end;
    }
    rest = bytes.subarray(at);
    position = { byte: base + at, line: position.line };
    if (isLast && skipping)
      records.push({ line: position.line + 1, text: '', fault: TOO_LONG, end: position });
    return records;
  };
}

function readText(
  bytes: Buffer,
  from: number,
  { end, fault }: { end: number; fault: string | null },
): { text: string; fault: string | null } {
  if (fault !== null) return { text: '', fault };
  let last = end;
  if (bytes[last - 1] === LF) last--;
  if (bytes[last - 1] === CR) last--;
  const text = bytes.toString('utf8', from, Math.max(last, from));
  // Invalid UTF-8 is decoded to this character, which valid texts do not contain in practice.
  return text.includes('\ufffd') ? { text: '', fault: NOT_UTF8 } : { text, fault: null };
}

/** Number of line ends; the last line of a file may have none. */
function linesIn(bytes: Buffer, from: number, end: number): number {
  let lines = 0;
  for (let at = bytes.indexOf(LF, from); at !== -1 && at < end; at = bytes.indexOf(LF, at + 1)) lines++;
  return lines;
}

/** One record per line. */
export const lineCutter: Cutter = (bytes, from, isLast) => {
  const lineEnd = bytes.indexOf(LF, from);
  if (lineEnd !== -1) return { end: lineEnd + 1, fault: null };
  return isLast ? { end: bytes.length, fault: null } : null;
};

/** Line ends inside quotes belong to the field. A quote is special only at the beginning of a field. */
export function csvCutter(delimiter: string): Cutter {
  const comma = delimiter.charCodeAt(0);
  return (bytes, from, isLast) => {
    const lineEnd = bytes.indexOf(LF, from);
    if (lineEnd !== -1 && !bytes.subarray(from, lineEnd).includes(QUOTE))
      return { end: lineEnd + 1, fault: null };
    const rejectLine = () =>
      lineEnd === -1 && !isLast
        ? null
        : { end: lineEnd === -1 ? bytes.length : lineEnd + 1, fault: NOT_CLOSED };
    let fieldBegins = true;
    for (let at = from; at < bytes.length; at++) {
      const byte = bytes[at];
      if (fieldBegins && byte === QUOTE) {
        const close = closingQuote(bytes, at + 1, isLast);
        if (close === null) return isLast ? rejectLine() : null;
        at = close;
        const next = bytes[close + 1];
        if (next !== undefined && next !== comma && next !== LF && next !== CR) return rejectLine();
        fieldBegins = false;
      } else if (byte === LF) return { end: at + 1, fault: null };
      else fieldBegins = byte === comma;
    }
    return isLast ? { end: bytes.length, fault: null } : null;
  };
}

/** The quote that ends a field; `""` is one inside it. Null: not within these bytes. */
function closingQuote(bytes: Buffer, from: number, isLast: boolean): number | null {
  for (let at = bytes.indexOf(QUOTE, from); at !== -1; at = bytes.indexOf(QUOTE, at + 2)) {
    // The last of these bytes may be the first half of a pair.
    if (at + 1 === bytes.length) return isLast ? at : null;
    if (bytes[at + 1] !== QUOTE) return at;
  }
  return null;
}

/** The fields of one CSV record. */
export function csvFields(text: string, delimiter: string): string[] {
  if (!text.includes('"')) return text.split(delimiter);
  const fields: string[] = [];
  let at = 0;
  for (;;) {
    if (text[at] === '"') {
      let close = at + 1;
      while (close < text.length && (text[close] !== '"' || text[close + 1] === '"'))
        close += text[close] === '"' ? 2 : 1;
      fields.push(text.slice(at + 1, close).replaceAll('""', '"'));
      at = close + 1;
    } else {
      const end = text.indexOf(delimiter, at);
      fields.push(text.slice(at, end === -1 ? text.length : end));
      at = end === -1 ? text.length : end;
    }
    if (at >= text.length) return fields;
    at++;
  }
}

/** Returns the one of comma, semicolon and tab that a header has most of. */
export function delimiterOf(header: string): string {
  const bare = header.replaceAll(/"[^"]*"/g, '');
  const count = (delimiter: string) => bare.split(delimiter).length;
  return [',', ';', '\t'].reduce((best, other) => (count(other) > count(best) ? other : best));
}

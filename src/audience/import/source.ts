import { createReadStream } from 'node:fs';
import { isRefusal, type Refusal } from '../../core/refusal.ts';
import {
  BEGINNING,
  createSplitter,
  csvCutter,
  delimiterOf,
  type ImportRecord,
  lineCutter,
  MAX_RECORD,
  readRecords,
  type StreamPosition,
} from './records.ts';
import { csvRowReader, ndjsonRowReader, type RowOptions, type RowReader } from './rows.ts';

/** The format of an import. The header of CSV is read first, because it defines the columns and the delimiter. */
export type ImportFormat = 'csv' | 'ndjson';

export interface ImportSource {
  reader: RowReader;
  /** Position of the first of the records. */
  rowsAt: StreamPosition;
  records: AsyncIterable<ImportRecord[]>;
  /** Releases the stream. */
  close(): Promise<void>;
}

/**
 * Opens a stream from its beginning; `bytesOfFile` reads files. `at`: where the records begin, in the text of
 * `plainText`; what precedes is read and skipped. Default: after the header. Returns a string, the reason, if it cannot
 * be imported.
 */
export async function openSource(
  bytes: AsyncIterable<Buffer>,
  format: ImportFormat,
  options: RowOptions = {},
  at?: StreamPosition,
): Promise<ImportSource | Refusal | string> {
  if (format === 'ndjson') {
    const text = plainText(bytes);
    const rowsAt = at ?? BEGINNING;
    const records = readRecords(skipped(text, rowsAt.byte), lineCutter, rowsAt);
    return { reader: ndjsonRowReader(options), rowsAt, records, close: () => closed(text) };
  }
  const { header, delimiter, recordsAt, close } = await openCsv(bytes);
  const reader = header === undefined ? 'there is no header line' : csvRowReader(header, options, delimiter);
  if (typeof reader === 'string' || isRefusal(reader)) {
    await close();
    return reader;
  }
  const rowsAt = at ?? header?.end ?? BEGINNING;
  return { reader, rowsAt, records: recordsAt(rowsAt), close };
}

/** The bytes of a file. Opens it when the first ones are requested, so that an error has a receiver. */
export async function* bytesOfFile(file: string): AsyncGenerator<Buffer> {
  yield* createReadStream(file);
}

/** `sep=;`, which Excel writes and reads as the first line of a CSV. */
const SEPARATOR = /^"?sep=([^"\s\w]|\t)"?[,;\t|]*$/i;

export interface OpenCsv {
  /** The first line that is not blank or `sep=`. */
  header: ImportRecord | undefined;
  delimiter: string;
  /** The records from a position after the header. Call it once. */
  recordsAt(start: StreamPosition): AsyncGenerator<ImportRecord[]>;
  close(): Promise<void>;
}

/** Reads the header of a CSV. */
export async function openCsv(bytes: AsyncIterable<Buffer>): Promise<OpenCsv> {
  const text = plainText(bytes);
  let head: Buffer = Buffer.alloc(0);
  for (;;) {
    const { value, done } = await text.next();
    const isLast = done === true;
    if (!isLast) head = Buffer.concat([head, value]);
    const [first, second] = createSplitter(lineCutter, BEGINNING)(head, isLast);
    const separator = SEPARATOR.exec(first?.text ?? '')?.[1];
    const header = separator === undefined ? first : second;
    if (header === undefined && !isLast && head.length <= MAX_RECORD) continue;
    const delimiter = separator ?? delimiterOf(header?.text ?? '');
    const recordsAt = (start: StreamPosition) =>
      readRecords(skipped(joined(head, text), start.byte), csvCutter(delimiter), start);
    return { header, delimiter, recordsAt, close: () => closed(text) };
  }
}

async function* joined(head: Buffer, rest: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  yield head;
  yield* rest;
}

/** Without the first `count` bytes. */
async function* skipped(text: AsyncGenerator<Buffer>, count: number): AsyncGenerator<Buffer> {
  let skip = count;
  for await (const chunk of text) {
    if (chunk.length > skip) yield chunk.subarray(skip);
    skip = Math.max(0, skip - chunk.length);
  }
}

async function closed(text: AsyncGenerator<Buffer>): Promise<void> {
  await text.return(undefined);
}

/** The format by the name of a file or the media type of an upload; null when it is neither. */
export function importFormatOf(name: string): ImportFormat | null {
  if (/^text\/csv$|\.(?:csv|tsv|txt)$/i.test(name)) return 'csv';
  return /^application\/(?:x-)?ndjson$|\.(?:ndjson|jsonl)$/i.test(name) ? 'ndjson' : null;
}

/** How the text of a file is written. */
interface TextForm {
  encoding: 'utf-8' | 'utf-16le' | 'utf-16be';
  /** Lines end with CR alone. */
  hasCr: boolean;
}

const CR = 0x0d;
const LF = 0x0a;
/** Bytes in which the first line end is searched. */
const MAX_HEAD = 256 * 1024;

/**
 * The text of a file of another program: UTF-16 with a byte order mark is decoded, and CR as the only line end becomes LF,
 * so that the reader of records knows UTF-8 and LF only. Positions count the bytes of the result.
 */
export async function* plainText(bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let head: Buffer = Buffer.alloc(0);
  let decode: ((chunk: Buffer | null) => Buffer) | null = null;
  for await (const chunk of bytes) {
    if (decode !== null) {
      yield decode(chunk);
      continue;
    }
    head = Buffer.concat([head, chunk]);
    // Whether a CR at the end is followed by LF is not known yet.
    const form = formOf(head) ?? (head.length > MAX_HEAD ? likelyFormOf(head) : null);
    if (form === null) continue;
    decode = decoderOf(form);
    yield decode(head);
  }
  if (decode === null) {
    decode = decoderOf(likelyFormOf(head));
    yield decode(head);
  }
  yield decode(null);
}

/** Decodes chunks in their order; null: there are no more. */
function decoderOf({ encoding, hasCr }: TextForm): (chunk: Buffer | null) => Buffer {
  const decoder = encoding === 'utf-8' ? null : new TextDecoder(encoding);
  return (chunk) => {
    if (decoder === null) return withLf(chunk ?? Buffer.alloc(0), hasCr);
    const text = chunk === null ? decoder.decode() : decoder.decode(chunk, { stream: true });
    return withLf(Buffer.from(text), hasCr);
  };
}

/** Null: there is no complete line end yet. */
function formOf(head: Buffer): TextForm | null {
  if (head.length < 4) return null;
  const encoding = encodingOf(head);
  const width = encoding === 'utf-8' ? 1 : 2;
  const offset = encoding === 'utf-16be' ? 1 : 0;
  for (let at = offset; at < head.length; at += width) {
    if (width === 2 && head[at + (offset === 1 ? -1 : 1)] !== 0) continue;
    if (head[at] === LF) return { encoding, hasCr: false };
    if (head[at] !== CR) continue;
    const next = at + width;
    if (next + (width - 1 - offset) >= head.length) return null;
    return { encoding, hasCr: head[next] !== LF };
  }
  return null;
}

/** The form of a text without a complete line end. */
function likelyFormOf(head: Buffer): TextForm {
  return { encoding: encodingOf(head), hasCr: head.includes(CR) && !head.includes(LF) };
}

function encodingOf(head: Buffer): TextForm['encoding'] {
  if (head[0] === 0xff && head[1] === 0xfe) return 'utf-16le';
  return head[0] === 0xfe && head[1] === 0xff ? 'utf-16be' : 'utf-8';
}

/** Of the same length. */
function withLf(chunk: Buffer, hasCr: boolean): Buffer {
  if (!hasCr || !chunk.includes(CR)) return chunk;
  const copy = Buffer.from(chunk);
  for (let at = copy.indexOf(CR); at !== -1; at = copy.indexOf(CR, at + 1)) copy[at] = LF;
  return copy;
}

import { createReadStream } from 'node:fs';
import { isRefusal, type Refusal } from '../../core/refusal.ts';
import {
  BEGINNING,
  type Cutter,
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
  cut: Cutter;
  /** Position of the first row. */
  rowsAt: StreamPosition;
  records: AsyncIterable<ImportRecord[]>;
  /** Releases the stream. */
  close(): Promise<void>;
}

/** Opens a stream from its beginning; `bytesOfFile` reads files. Returns a string, the reason, if it cannot be imported. */
export async function openSource(
  bytes: AsyncIterable<Buffer>,
  format: ImportFormat,
  options: RowOptions = {},
): Promise<ImportSource | Refusal | string> {
  const iterator = plainText(bytes)[Symbol.asyncIterator]();
  const close = async () => void (await iterator.return?.(undefined));
  if (format === 'ndjson') {
    const records = readRecords(concatenated(Buffer.alloc(0), iterator), lineCutter);
    return { reader: ndjsonRowReader(options), cut: lineCutter, rowsAt: BEGINNING, records, close };
  }
  const { header, delimiter, head } = await readHeader(iterator);
  const reader = header === undefined ? 'there is no header line' : csvRowReader(header, options, delimiter);
  if (header === undefined || typeof reader === 'string' || isRefusal(reader)) {
    await close();
    return typeof reader === 'string' || isRefusal(reader) ? reader : 'there is no header line';
  }
  const cut = csvCutter(delimiter);
  const rest = concatenated(head.subarray(header.end.byte), iterator);
  return { reader, cut, rowsAt: header.end, records: readRecords(rest, cut, header.end), close };
}

/** The bytes of a file. Opens it when the first ones are requested, so that an error has a receiver. */
export async function* bytesOfFile(file: string): AsyncGenerator<Buffer> {
  yield* createReadStream(file);
}

/** The text of a file from which records are cut (`plainText`), from `start` on, a position in that text. */
export async function* textOfFile(file: string, start: number): AsyncGenerator<Buffer> {
  yield* plainText(createReadStream(file), { start, reopen: (at) => createReadStream(file, { start: at }) });
}

/** `sep=;`, which Excel writes and reads as the first line of a CSV. */
const SEPARATOR = /^"?sep=([^"\s\w]|\t)"?[,;\t|]*$/i;

/** The header: the first line that is not blank or `sep=`; its delimiter, and all the bytes that were read to find it. */
export async function readHeader(
  iterator: AsyncIterator<Buffer>,
): Promise<{ header: ImportRecord | undefined; delimiter: string; head: Buffer }> {
  let head: Buffer = Buffer.alloc(0);
  for (;;) {
    const { value, done } = await iterator.next();
    if (done !== true) head = Buffer.concat([head, value]);
    const [first, second] = createSplitter(lineCutter, BEGINNING)(head, done === true);
    const separator = SEPARATOR.exec(first?.text ?? '')?.[1];
    const header = separator === undefined ? first : second;
    if (header !== undefined || done === true || head.length > MAX_RECORD)
      return { header, delimiter: separator ?? delimiterOf(header?.text ?? ''), head };
  }
}

export async function* concatenated(first: Buffer, iterator: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  yield first;
  for (let next = await iterator.next(); next.done !== true; next = await iterator.next()) yield next.value;
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
 * so that the reader of records knows UTF-8 and LF only. Begins at `start`; positions count the bytes of the result.
 */
export async function* plainText(
  bytes: AsyncIterable<Buffer>,
  openAt?: { start: number; reopen(start: number): AsyncIterable<Buffer> },
): AsyncGenerator<Buffer> {
  const iterator = bytes[Symbol.asyncIterator]();
  try {
    const { head, form, isLast } = await readHead(iterator);
    const start = openAt?.start ?? 0;
    if (openAt !== undefined && start > 0 && form.encoding === 'utf-8') {
      for await (const chunk of openAt.reopen(start)) yield withLf(chunk, form);
      return;
    }
    let skip = start;
    for await (const chunk of decoded(head, isLast ? null : iterator, form)) {
      const rest = chunk.subarray(Math.min(skip, chunk.length));
      skip -= chunk.length - rest.length;
      if (rest.length > 0) yield withLf(rest, form);
    }
  } finally {
    await iterator.return?.();
  }
}

async function readHead(
  iterator: AsyncIterator<Buffer>,
): Promise<{ head: Buffer; form: TextForm; isLast: boolean }> {
  let head: Buffer = Buffer.alloc(0);
  for (;;) {
    const { value, done } = await iterator.next();
    const isLast = done === true;
    if (!isLast) head = Buffer.concat([head, value]);
    const form = formOf(head);
    // Whether a CR at the end is followed by LF is not known yet.
    if (form !== null || isLast || head.length > MAX_HEAD)
      return { head, form: form ?? { encoding: encodingOf(head), hasCr: endsWithCr(head) }, isLast };
  }
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

function endsWithCr(head: Buffer): boolean {
  return head.includes(CR) && !head.includes(LF);
}

function encodingOf(head: Buffer): TextForm['encoding'] {
  if (head[0] === 0xff && head[1] === 0xfe) return 'utf-16le';
  return head[0] === 0xfe && head[1] === 0xff ? 'utf-16be' : 'utf-8';
}

async function* decoded(
  head: Buffer,
  iterator: AsyncIterator<Buffer> | null,
  { encoding }: TextForm,
): AsyncGenerator<Buffer> {
  const decoder = encoding === 'utf-8' ? null : new TextDecoder(encoding);
  yield decoder === null ? head : Buffer.from(decoder.decode(head, { stream: true }));
  for (
    let next = await iterator?.next();
    next !== undefined && next.done !== true;
    next = await iterator?.next()
  )
    yield decoder === null ? next.value : Buffer.from(decoder.decode(next.value, { stream: true }));
  if (decoder !== null) yield Buffer.from(decoder.decode());
}

/** Of the same length. */
function withLf(chunk: Buffer, { hasCr }: TextForm): Buffer {
  if (!hasCr || !chunk.includes(CR)) return chunk;
  const copy = Buffer.from(chunk);
  for (let at = copy.indexOf(CR); at !== -1; at = copy.indexOf(CR, at + 1)) copy[at] = LF;
  return copy;
}

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
import { plainText } from './text-form.ts';

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

/** The text of a file from which records are cut (text-form.ts), from `start` on, a position in that text. */
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

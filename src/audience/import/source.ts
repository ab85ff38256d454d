import {
  BEGINNING,
  type Cutter,
  createSplitter,
  csvCutter,
  delimiterOf,
  type ImportRecord,
  lineCutter,
  MAX_RECORD,
  type Place,
  readRecords,
} from './records.ts';
import { csvRowReader, ndjsonRowReader, type RowOptions, type RowReader } from './rows.ts';

/**
 * What is imported, from its first byte on: a CSV's header is read before anything else, because it says what
 * the columns are and what separates them.
 */
export type ImportFormat = 'csv' | 'ndjson';

export interface ImportSource {
  reader: RowReader;
  cut: Cutter;
  /** Where the first row begins. */
  rowsAt: Place;
  records: AsyncIterable<ImportRecord[]>;
  /** Lets go of the bytes that were not read. */
  close(): Promise<void>;
}

/** `bytes` from the beginning. A text instead of the source: why it cannot be imported. */
export async function openSource(
  bytes: AsyncIterable<Buffer>,
  format: ImportFormat,
  options: RowOptions = {},
): Promise<ImportSource | string> {
  const iterator = bytes[Symbol.asyncIterator]();
  const close = async () => void (await iterator.return?.());
  if (format === 'ndjson') {
    const records = readRecords(afterwards(Buffer.alloc(0), iterator), lineCutter);
    return { reader: ndjsonRowReader(options), cut: lineCutter, rowsAt: BEGINNING, records, close };
  }
  const { header, head } = await readHeader(iterator);
  const reader = header === undefined ? 'there is no header line' : csvRowReader(header, options);
  if (header === undefined || typeof reader === 'string') {
    await close();
    return typeof reader === 'string' ? reader : 'there is no header line';
  }
  const cut = csvCutter(delimiterOf(header.text));
  const behind = afterwards(head.subarray(header.end.byte), iterator);
  return { reader, cut, rowsAt: header.end, records: readRecords(behind, cut, header.end), close };
}

/** The first line that is not blank, and all the bytes that were read to find it. */
async function readHeader(
  iterator: AsyncIterator<Buffer>,
): Promise<{ header: ImportRecord | undefined; head: Buffer }> {
  let head: Buffer = Buffer.alloc(0);
  for (;;) {
    const { value, done } = await iterator.next();
    if (done !== true) head = Buffer.concat([head, value]);
    const [header] = createSplitter(lineCutter, BEGINNING)(head, done === true);
    if (header !== undefined || done === true || head.length > MAX_RECORD) return { header, head };
  }
}

async function* afterwards(first: Buffer, iterator: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  yield first;
  for (let next = await iterator.next(); next.done !== true; next = await iterator.next()) yield next.value;
}

/** Of a file by its name, of an upload by its media type; null when it is neither. */
export function formatOf(name: string): ImportFormat | null {
  if (/^text\/csv$|\.(?:csv|tsv|txt)$/i.test(name)) return 'csv';
  return /^application\/(?:x-)?ndjson$|\.(?:ndjson|jsonl)$/i.test(name) ? 'ndjson' : null;
}

import { gunzipSync, inflateRawSync } from 'node:zlib';
import type { IncomingLimits } from '../limits.ts';

/**
 * Opens the gzip and zip files in which reports are sent, within limits on the size and the compression ratio
 * of the content: a bomb is "too-large", everything else that cannot be opened is "unreadable". Nothing is
 * written to disk.
 */
export type Opened = { content: Buffer } | { problem: 'too-large' | 'unreadable' };

type ArchiveLimits = Pick<IncomingLimits, 'reportBytes' | 'reportRatio' | 'ratioFreeBytes'>;

/** Opens gzip or zip by their magic; anything else is its own content. */
export function open(bytes: Buffer, limits: ArchiveLimits): Opened {
  if (bytes[0] === 0x1f && bytes[1] === 0x8b) {
    const maxOutputLength = maxContent(bytes, limits);
    const opened = inflated(() => gunzipSync(bytes, { maxOutputLength, finishFlush: SYNC_FLUSH }));
    if (!('problem' in opened) || opened.problem === 'too-large') return opened;
    // Bytes behind the stream, such as a line end, are an error to zlib; the deflate stream inside knows its end.
    const stream = bytes.subarray(gzipHeaderLength(bytes));
    return inflated(() => inflateRawSync(stream, { maxOutputLength, finishFlush: SYNC_FLUSH }));
  }
  if (bytes.length > 4 && bytes.readUInt32LE(0) === LOCAL_HEADER) return openZip(bytes, limits);
  return bytes.length > limits.reportBytes ? { problem: 'too-large' } : { content: bytes };
}

/** RFC 1952 §2.3: ten octets, then the optional fields that the flags announce. */
function gzipHeaderLength(bytes: Buffer): number {
  const flags = bytes[3] ?? 0;
  let length = 10;
  if ((flags & 4) !== 0 && bytes.length >= length + 2) length += 2 + bytes.readUInt16LE(length);
  for (const flag of [8, 16]) {
    // File name and comment end with a zero octet.
    if ((flags & flag) !== 0) length = bytes.indexOf(0, length) + 1 || bytes.length;
  }
  return (flags & 2) === 0 ? length : length + 2;
}

/** Bytes that `packed` may decompress to. */
function maxContent(packed: Buffer, { reportBytes, reportRatio, ratioFreeBytes }: ArchiveLimits): number {
  return Math.min(reportBytes, Math.max(ratioFreeBytes, packed.length * reportRatio));
}

/** Z_SYNC_FLUSH: what a cut-off file still holds is better than nothing. */
const SYNC_FLUSH = 2;

const LOCAL_HEADER = 0x04034b50;
const CENTRAL_HEADER = 0x02014b50;
const END_OF_DIRECTORY = Buffer.from([0x50, 0x4b, 0x05, 0x06]);
const MOST_ENTRIES = 20;

interface Entry {
  method: number;
  compressedSize: number;
  localAt: number;
  isEncrypted: boolean;
  name: string;
}

/** The first XML or JSON file of the archive, else its first file. */
function openZip(bytes: Buffer, limits: ArchiveLimits): Opened {
  const entries = directoryOf(bytes);
  const entry =
    entries.find(({ name }) => /\.(?:xml|json)$/i.test(name)) ??
    entries.find(({ name }) => !name.endsWith('/'));
  if (!entry || entry.isEncrypted) return { problem: 'unreadable' };
  const { localAt, compressedSize, method } = entry;
  if (localAt + 30 > bytes.length || bytes.readUInt32LE(localAt) !== LOCAL_HEADER)
    return { problem: 'unreadable' };
  const dataAt = localAt + 30 + bytes.readUInt16LE(localAt + 26) + bytes.readUInt16LE(localAt + 28);
  const data = bytes.subarray(dataAt, dataAt + compressedSize);
  if (method === 0) return data.length > limits.reportBytes ? { problem: 'too-large' } : { content: data };
  if (method !== 8) return { problem: 'unreadable' };
  const maxOutputLength = maxContent(data, limits);
  return inflated(() => inflateRawSync(data, { maxOutputLength, finishFlush: SYNC_FLUSH }));
}

/** From the central directory, which alone gives sizes when the file was written as a stream. */
function directoryOf(bytes: Buffer): Entry[] {
  const endAt = bytes.lastIndexOf(END_OF_DIRECTORY);
  const entries: Entry[] = [];
  if (endAt < 0 || endAt + 22 > bytes.length) return entries;
  let at = bytes.readUInt32LE(endAt + 16);
  while (
    entries.length < MOST_ENTRIES &&
    at + 46 <= bytes.length &&
    bytes.readUInt32LE(at) === CENTRAL_HEADER
  ) {
    const nameLength = bytes.readUInt16LE(at + 28);
    entries.push({
      method: bytes.readUInt16LE(at + 10),
      compressedSize: bytes.readUInt32LE(at + 20),
      localAt: bytes.readUInt32LE(at + 42),
      isEncrypted: (bytes.readUInt16LE(at + 8) & 1) === 1,
      name: bytes.subarray(at + 46, at + 46 + nameLength).toString('latin1'),
    });
    at += 46 + nameLength + bytes.readUInt16LE(at + 30) + bytes.readUInt16LE(at + 32);
  }
  return entries;
}

function inflated(inflate: () => Buffer): Opened {
  try {
    return { content: inflate() };
  } catch (error) {
    const isTooLarge = error instanceof Error && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE';
    return { problem: isTooLarge ? 'too-large' : 'unreadable' };
  }
}

import { gunzipSync, inflateRawSync } from 'node:zlib';
import type { IncomingLimits } from '../limits.ts';

/**
 * Decompresses the gzip and zip files in which reports are sent, within limits on the size and the compression ratio
 * of the content: an archive bomb is "too-large", every other failure "unreadable". Nothing is written to disk.
 *
 * No library reads the zip directory: fflate inflates beyond an understated size (300 KB of zip took 3.5 s), and
 * yauzl is asynchronous, which the parser is not.
 */
export type ArchiveContent = { content: Buffer } | { problem: 'too-large' | 'unreadable' };

type ArchiveLimits = Pick<IncomingLimits, 'reportBytes' | 'reportRatio' | 'ratioFreeBytes'>;

/** Some senders compress a compressed file again. */
const MAX_LAYERS = 3;

/** Recognizes gzip and zip by their magic numbers, also within one another; returns all other bytes unchanged. */
export function decompress(bytes: Buffer, limits: ArchiveLimits): ArchiveContent {
  let unpacked = decompressLayer(bytes, limits);
  for (let layer = 1; layer < MAX_LAYERS; layer++) {
    if ('problem' in unpacked || !isArchive(unpacked.content)) break;
    unpacked = decompressLayer(unpacked.content, limits);
  }
  return unpacked;
}

/** Whether the bytes begin as gzip or zip. */
export function isArchive(bytes: Buffer): boolean {
  return (
    (bytes[0] === 0x1f && bytes[1] === 0x8b) || (bytes.length > 4 && bytes.readUInt32LE(0) === LOCAL_HEADER)
  );
}

function decompressLayer(bytes: Buffer, limits: ArchiveLimits): ArchiveContent {
  if (bytes[0] === 0x1f && bytes[1] === 0x8b) {
    const maxOutputLength = maxContentLength(bytes, limits);
    const content = inflate(() => gunzipSync(bytes, { maxOutputLength, finishFlush: SYNC_FLUSH }));
    if (!('problem' in content) || content.problem === 'too-large') return content;
    // zlib rejects bytes after the gzip member, such as a line end. A raw deflate stream marks its own end.
    const stream = bytes.subarray(gzipHeaderLength(bytes));
    return inflate(() => inflateRawSync(stream, { maxOutputLength, finishFlush: SYNC_FLUSH }));
  }
  if (bytes.length > 4 && bytes.readUInt32LE(0) === LOCAL_HEADER) return readZip(bytes, limits);
  return bytes.length > limits.reportBytes ? { problem: 'too-large' } : { content: bytes };
}

/** RFC 1952 §2.3: ten bytes, then the optional fields that the flags declare. */
function gzipHeaderLength(bytes: Buffer): number {
  const flags = bytes[3] ?? 0;
  let length = 10;
  if ((flags & 4) !== 0 && bytes.length >= length + 2) length += 2 + bytes.readUInt16LE(length);
  for (const flag of [8, 16]) {
    // File name and comment end with a zero byte.
    if ((flags & flag) !== 0) length = bytes.indexOf(0, length) + 1 || bytes.length;
  }
  return (flags & 2) === 0 ? length : length + 2;
}

/** The number of bytes that `packed` may decompress to. */
function maxContentLength(
  packed: Buffer,
  { reportBytes, reportRatio, ratioFreeBytes }: ArchiveLimits,
): number {
  return Math.min(reportBytes, Math.max(ratioFreeBytes, packed.length * reportRatio));
}

/** Z_SYNC_FLUSH: returns the readable part of a truncated file instead of an error. */
const SYNC_FLUSH = 2;

const LOCAL_HEADER = 0x04034b50;
const CENTRAL_HEADER = 0x02014b50;
const END_OF_DIRECTORY = Buffer.from([0x50, 0x4b, 0x05, 0x06]);
const MAX_ENTRIES = 20;

interface Entry {
  method: number;
  compressedSize: number;
  localOffset: number;
  isEncrypted: boolean;
  name: string;
}

/** What macOS adds to an archive: `__MACOSX/._report.xml`, `.DS_Store`. */
const METADATA_FILE = /^__MACOSX\/|(?:^|\/)\.(?:_|DS_Store$)/;

/** Returns the content of the first XML or JSON file of the archive, else of its first file. */
function readZip(bytes: Buffer, limits: ArchiveLimits): ArchiveContent {
  const entries = readDirectory(bytes).filter(({ name }) => !METADATA_FILE.test(name));
  const entry =
    entries.find(({ name }) => /\.(?:xml|json)$/i.test(name)) ??
    entries.find(({ name }) => !name.endsWith('/'));
  if (!entry || entry.isEncrypted) return { problem: 'unreadable' };
  const { localOffset, compressedSize, method } = entry;
  if (localOffset + 30 > bytes.length || bytes.readUInt32LE(localOffset) !== LOCAL_HEADER)
    return { problem: 'unreadable' };
  const dataAt =
    localOffset + 30 + bytes.readUInt16LE(localOffset + 26) + bytes.readUInt16LE(localOffset + 28);
  const data = bytes.subarray(dataAt, dataAt + compressedSize);
  if (method === 0) return data.length > limits.reportBytes ? { problem: 'too-large' } : { content: data };
  if (method !== 8) return { problem: 'unreadable' };
  const maxOutputLength = maxContentLength(data, limits);
  return inflate(() => inflateRawSync(data, { maxOutputLength, finishFlush: SYNC_FLUSH }));
}

/** Reads the central directory: of a zip written as a stream, the local headers lack the sizes. */
function readDirectory(bytes: Buffer): Entry[] {
  const endAt = bytes.lastIndexOf(END_OF_DIRECTORY);
  const entries: Entry[] = [];
  if (endAt < 0 || endAt + 22 > bytes.length) return entries;
  let at = bytes.readUInt32LE(endAt + 16);
  while (
    entries.length < MAX_ENTRIES &&
    at + 46 <= bytes.length &&
    bytes.readUInt32LE(at) === CENTRAL_HEADER
  ) {
    const nameLength = bytes.readUInt16LE(at + 28);
    entries.push({
      method: bytes.readUInt16LE(at + 10),
      compressedSize: bytes.readUInt32LE(at + 20),
      localOffset: bytes.readUInt32LE(at + 42),
      isEncrypted: (bytes.readUInt16LE(at + 8) & 1) === 1,
      name: bytes.subarray(at + 46, at + 46 + nameLength).toString('latin1'),
    });
    at += 46 + nameLength + bytes.readUInt16LE(at + 30) + bytes.readUInt16LE(at + 32);
  }
  return entries;
}

function inflate(read: () => Buffer): ArchiveContent {
  try {
    return { content: read() };
  } catch (error) {
    const isTooLarge = error instanceof Error && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE';
    return { problem: isTooLarge ? 'too-large' : 'unreadable' };
  }
}

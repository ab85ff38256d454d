import { gunzipSync, inflateRawSync } from 'node:zlib';
import { decodeText } from '../charset.ts';
import { decodeWords } from '../fields.ts';
import type { IncomingLimits } from '../limits.ts';
import { contentOf, leavesOf, type Part, readMail } from '../mime.ts';
import { type AggregateReport, readAggregateReport } from './aggregate-report.ts';
import { readTlsReport, type TlsReport } from './tls-report.ts';

/**
 * Finds the DMARC or TLS report attached to a mail. A mail that announces a report is recognized as one even if the
 * report cannot be read, so that the operator sees that it arrived and why it was not read.
 */
export type AttachedReport =
  | { kind: 'dmarc-report'; aggregate: AggregateReport | null; tls: null; problem: ReportProblem | null }
  | { kind: 'tls-report'; aggregate: null; tls: TlsReport | null; problem: ReportProblem | null };

export type ReportProblem = 'too-large' | 'unreadable' | 'not-opened';

/**
 * Null when the mail neither contains nor announces a report. Without `opensAttachments` no attachment is opened; a mail
 * that announces a report is still recognized.
 */
export function readAttachedReport(
  mail: Part,
  limits: IncomingLimits,
  opensAttachments: boolean,
): AttachedReport | null {
  const mails = [...mailsIn(mail, limits)];
  const announced = mails.map(announcedKind).find((kind) => kind !== null) ?? null;
  if (!opensAttachments) return announced === null ? null : unread(announced, 'not-opened');
  let problem: ReportProblem | null = null;
  let opened = 0;
  let left = limits.reportBytes;
  for (const part of mails.flatMap((each) => [...leavesOf(each)])) {
    if (!mayBeReport(part) || opened++ >= limits.attachments || left <= 0) continue;
    const found = readReportFile(contentOf(part, left), { ...limits, reportBytes: left });
    if (found.report) return found.report;
    problem ??= found.problem;
    left -= found.bytes;
  }
  return announced === null || problem === null ? null : unread(announced, problem);
}

/** Messages within one another whose parts are read: a report may be forwarded as message/rfc822. */
const MAX_FORWARDED = 3;

/** The mail, and the messages that it forwards. */
function* mailsIn(mail: Part, limits: IncomingLimits, level = 0): Generator<Part> {
  yield mail;
  if (level === MAX_FORWARDED) return;
  let messages = 0;
  for (const part of leavesOf(mail)) {
    if (!isMessage(part) || messages++ >= limits.attachments) continue;
    yield* mailsIn(readMail(contentOf(part, limits.mailBytes), limits), limits, level + 1);
  }
}

function isMessage({ type, filename }: Part): boolean {
  return type === 'message/rfc822' || type === 'message/global' || /\.eml$/i.test(filename);
}

function unread(kind: AttachedReport['kind'], problem: ReportProblem): AttachedReport {
  return kind === 'tls-report'
    ? { kind, aggregate: null, tls: null, problem }
    : { kind, aggregate: null, tls: null, problem };
}

/** Reads a report file: XML or JSON, plain or compressed. `bytes`: the bytes read without finding a report. */
export function readReportFile(
  bytes: Buffer,
  limits: IncomingLimits,
): { report: AttachedReport; problem: null } | { report: null; problem: ReportProblem; bytes: number } {
  const unpacked = decompress(bytes, limits);
  // An archive bomb is decompressed up to the limit.
  if ('problem' in unpacked) return { report: null, problem: unpacked.problem, bytes: limits.reportBytes };
  const text = withoutIntroduction(withoutByteOrderMark(unpacked.content));
  const start = text.trimStart().charAt(0);
  const tls = start === '{' ? readTlsReport(text, limits) : null;
  if (tls) return { report: { kind: 'tls-report', aggregate: null, tls, problem: null }, problem: null };
  const aggregate = start === '<' ? readAggregateReport(text, limits) : null;
  if (aggregate === 'too-large')
    return { report: null, problem: 'too-large', bytes: unpacked.content.length };
  if (aggregate)
    return { report: { kind: 'dmarc-report', aggregate, tls: null, problem: null }, problem: null };
  return { report: null, problem: 'unreadable', bytes: unpacked.content.length };
}

const TYPES = new Set([
  'application/zip',
  'application/x-zip',
  'application/x-zip-compressed',
  'application/gzip',
  'application/x-gzip',
  'application/xml',
  'text/xml',
  'application/tlsrpt+json',
  'application/tlsrpt+gzip',
  'application/json',
  'application/octet-stream',
]);

/** By type, by name, or by what the content begins with: many reports have neither. */
function mayBeReport(part: Part): boolean {
  if (TYPES.has(part.type) || /\.(?:xml|json|zip|gz|gzip)$/i.test(part.filename)) return true;
  const start = contentOf(part, MAX_INTRODUCTION);
  if (isArchive(start)) return true;
  const text = withoutByteOrderMark(start);
  return REPORT_START.test(text) || /^\s*\{\s*"/.test(text);
}

/** Characters of a text part in front of a report. */
const MAX_INTRODUCTION = 2000;

/** The line with which an XML report begins. */
const REPORT_START = /^[ \t]{0,100}<(?:\?xml\s|(?:\w{1,20}:)?feedback[\s>])/m;

/** XML that is the text of a mail may follow a greeting. */
function withoutIntroduction(text: string): string {
  if (/^\s*[<{]/.test(text.slice(0, MAX_INTRODUCTION))) return text;
  const at = text.slice(0, MAX_INTRODUCTION).search(REPORT_START);
  return at < 0 ? text : text.slice(at);
}

/** RFC 9990 §2.4 (subject, file name) and RFC 8460 §5.3 (report type, header fields). */
function announcedKind(mail: Part): AttachedReport['kind'] | null {
  const subject = decodeWords(mail.fields.get('subject'));
  const isTls =
    mail.parameters.get('report-type')?.toLowerCase() === 'tlsrpt' ||
    mail.fields.get('tls-report-domain') !== '' ||
    [...leavesOf(mail)].some(({ type }) => type.startsWith('application/tlsrpt'));
  if (isTls) return 'tls-report';
  const isDmarc =
    /^(?:\[[^\]]{1,40}\] ?|fwd?: |re: ){0,3}report[ -]domain:/i.test(subject) ||
    [...leavesOf(mail)].some(({ filename }) =>
      /^[^!\s]{1,255}![^!\s]{1,255}!\d{6,12}!\d{6,12}/.test(filename),
    );
  return isDmarc ? 'dmarc-report' : null;
}

function withoutByteOrderMark(bytes: Buffer): string {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return decodeText(bytes, 'utf-16le');
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return decodeText(bytes, 'utf-16be');
  const text = decodeText(bytes, null);
  return text.startsWith('\ufeff') ? text.slice(1) : text;
}

/**
 * Decompresses the gzip and zip files in which reports are sent, within limits on the size and the compression ratio
 * of the content: an archive bomb is "too-large", every other failure "unreadable". Nothing is written to disk.
 *
 * No library reads the zip directory: fflate inflates beyond an understated size (300 KB of zip took 3.5 s), and
 * yauzl is asynchronous, which the parser is not.
 */
type ArchiveContent = { content: Buffer } | { problem: 'too-large' | 'unreadable' };

type ArchiveLimits = Pick<IncomingLimits, 'reportBytes' | 'reportRatio' | 'ratioFreeBytes'>;

/** Some senders compress a compressed file again. */
const MAX_LAYERS = 3;

/** Recognizes gzip and zip by their magic numbers, also within one another; returns all other bytes unchanged. */
function decompress(bytes: Buffer, limits: ArchiveLimits): ArchiveContent {
  let unpacked = decompressLayer(bytes, limits);
  for (let layer = 1; layer < MAX_LAYERS; layer++) {
    if ('problem' in unpacked || !isArchive(unpacked.content)) break;
    unpacked = decompressLayer(unpacked.content, limits);
  }
  return unpacked;
}

/** Whether the bytes begin as gzip or zip. */
function isArchive(bytes: Buffer): boolean {
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

import { decodeText } from '../charset.ts';
import { decodeWords } from '../fields.ts';
import type { IncomingLimits } from '../limits.ts';
import { contentOf, leavesOf, type Part, readMail } from '../mime.ts';
import { type AggregateReport, readAggregateReport } from './aggregate-report.ts';
import { decompress, isArchive } from './archive.ts';
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

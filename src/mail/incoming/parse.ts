import { complaintOf, readComplaint } from './arf.ts';
import { readAutoReply } from './auto-reply.ts';
import { firstAddress, readDeliveryReport } from './dsn.ts';
import { decodeWords, type Fields } from './fields.ts';
import { judgeGroup } from './judge.ts';
import { INCOMING_LIMITS, type IncomingLimits } from './limits.ts';
import { splitMbox } from './mbox.ts';
import { type Part, readMail } from './mime.ts';
import { type ReturnedMail, sortParts } from './notice.ts';
import type { IncomingReport } from './report.ts';
import type { AggregateReport } from './reports/aggregate-report.ts';
import { type ReportProblem, readAttachedReport, readReportFile } from './reports/attached-report.ts';
import type { TlsReport } from './reports/tls-report.ts';
import { readSesNotification, type SesNotification } from './ses-notification.ts';

/**
 * Reads one mail that came back: what kind it is and what it says, in the shape of `bounce parse`. Pure, never
 * throws, and takes time in proportion to the mail's size whatever the mail holds. It matches nothing to
 * our messages: the ids it returns are the mail's own claims, to be checked by who has the keys.
 */
export type IncomingKind = 'dsn' | 'arf' | 'auto-reply' | 'dmarc-report' | 'tls-report' | 'unknown';

export interface ParsedIncoming {
  kind: IncomingKind;
  /** Address of the From field, '' when there is none. Nothing vouches for it. */
  from: string;
  reports: IncomingReport[];
  /** Message-ID of the mail that came back or was answered, without brackets. */
  originalMessageId: string | null;
  /** RFC 3461 ENVID, as reported. */
  originalEnvelopeId: string | null;
  /** `X-Postrider-Id` of the returned part: signed, to be verified by the caller. */
  postriderId: string | null;
  /** Of kind `dmarc-report`; null when it was not opened or could not be read. */
  aggregate: AggregateReport | null;
  /** Of kind `tls-report`; null when it was not opened or could not be read. */
  tls: TlsReport | null;
  /** Why a report that announced itself was not read. */
  problem: ReportProblem | null;
}

export interface ParseOptions {
  limits?: IncomingLimits;
  /**
   * Whether attachments are opened in search of a DMARC or TLS report. That is the costly part of reading a
   * mail, so the listener allows it only for the addresses that take reports.
   */
  opensReports?: boolean;
}

export function parseIncoming(raw: Buffer, options: ParseOptions = {}): ParsedIncoming {
  const { limits = INCOMING_LIMITS, opensReports = true } = options;
  const mail = readMail(raw, limits);
  const parts = sortParts(mail, limits);
  const head = withDecodedSubject(mail.fields);
  return {
    ...EMPTY,
    from: firstAddress(head.get('from')),
    ...idsOf(head, parts),
    ...readKind(mail, head, parts, limits, opensReports),
  };
}

/** The surest forms first: what carries a machine-readable part is of that kind whatever its words say. */
function readKind(
  mail: Part,
  head: Fields,
  parts: ReturnedMail,
  limits: IncomingLimits,
  opensReports: boolean,
): Partial<ParsedIncoming> {
  const complaint = readComplaint(head, parts, limits);
  if (complaint) return { kind: 'arf', reports: complaint.reports, originalEnvelopeId: complaint.envelopeId };
  const attached = parts.statusTexts.length > 0 ? null : readAttachedReport(mail, limits, opensReports);
  if (attached) return attached;
  const notification = readSesNotification(parts.lines);
  if (notification) return fromSes(notification);
  const reply = parts.statusTexts.length > 0 ? null : readAutoReply(head, parts);
  if (reply) return { kind: 'auto-reply', reports: [reply] };
  const dsn = readDeliveryReport(head, parts, limits);
  return dsn ? { kind: 'dsn', reports: dsn.reports, originalEnvelopeId: dsn.envelopeId } : {};
}

const EMPTY: ParsedIncoming = {
  kind: 'unknown',
  from: '',
  reports: [],
  originalMessageId: null,
  originalEnvelopeId: null,
  postriderId: null,
  aggregate: null,
  tls: null,
  problem: null,
};

/**
 * Reads a file, which need not be one mail: of an mbox the reports are put together under its first mail's
 * kind and ids, and a DMARC or TLS report may lie there as it was attached.
 */
export function parseFile(file: Buffer, limits: IncomingLimits = INCOMING_LIMITS): ParsedIncoming {
  const { report } = isReportFile(file) ? readReportFile(file, limits) : { report: null };
  if (report) return { ...EMPTY, ...report };
  const [first, ...others] = splitMbox(file, MOST_MAILS);
  const parsed = parseIncoming(first ?? file, { limits });
  const reports = others.flatMap((mail) => parseIncoming(mail, { limits }).reports);
  return { ...parsed, reports: [...parsed.reports, ...reports] };
}

/** gzip, zip, XML or JSON: no mail begins so. */
function isReportFile(file: Buffer): boolean {
  const start = file.subarray(0, 200).toString('latin1');
  return (
    start.startsWith('\x1f\x8b') ||
    start.startsWith('PK\x03\x04') ||
    /^[\s\xef\xbb\xbf\xff\xfe\0]*[<{]/.test(start)
  );
}

const MOST_MAILS = 50;

function fromSes({ kind, groups, feedbackType, messageId }: SesNotification): Partial<ParsedIncoming> {
  return kind === 'complaint'
    ? {
        kind: 'arf',
        reports: groups.map(({ recipient }) => complaintOf(recipient, feedbackType)),
        originalMessageId: messageId,
      }
    : { kind: 'dsn', reports: groups.map((group) => judgeGroup(group)), originalMessageId: messageId };
}

function idsOf(
  mail: Fields,
  parts: ReturnedMail,
): { originalMessageId: string | null; postriderId: string | null } {
  const messageId = parts.original.get('message-id') || mail.get('in-reply-to');
  return {
    originalMessageId: /<?([^<>\s]{1,500})>?/.exec(messageId)?.[1] ?? null,
    postriderId: parts.original.get('x-postrider-id').slice(0, 500) || null,
  };
}

function withDecodedSubject(fields: Fields): Fields {
  const subject = decodeWords(fields.get('subject'));
  return { ...fields, get: (name) => (name === 'subject' ? subject : fields.get(name)) };
}

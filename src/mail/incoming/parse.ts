import type { ClassifyByRules } from '../classify/classifier.ts';
import { complaintOf, readComplaint } from './arf.ts';
import { readAutoReply, readGeneratedReply } from './auto-reply.ts';
import { classifyGroup } from './classify-report.ts';
import { readDeliveryReport } from './dsn.ts';
import { decodeWords, type Fields, firstAddress } from './fields.ts';
import { INCOMING_LIMITS, type IncomingLimits } from './limits.ts';
import { type Part, readMail } from './mime.ts';
import { type ReturnedMail, sortParts } from './notice.ts';
import type { IncomingReport } from './report.ts';
import type { AggregateReport } from './reports/aggregate-report.ts';
import { type ReportProblem, readAttachedReport, readReportFile } from './reports/attached-report.ts';
import type { TlsReport } from './reports/tls-report.ts';
import { readSesNotification, type SesNotification } from './ses-notification.ts';

/**
 * Parses a received mail into its kind and its reports, in the form that `bounce parse` prints. Pure, never throws, and
 * takes time linear in the size of the mail, whatever its content. The ids that it returns are claims of the mail: the
 * caller verifies them.
 */
export type IncomingKind = 'dsn' | 'arf' | 'auto-reply' | 'dmarc-report' | 'tls-report' | 'unknown';

export interface ParsedIncoming {
  kind: IncomingKind;
  /** Address of the From field, '' for none. Not authenticated. */
  from: string;
  /** Whether the mail declares that no person sent it (RFC 3834 §5). */
  isAutomatic: boolean;
  /** Whether the subject asks to unsubscribe, as in requests that mail clients and providers write. */
  asksToUnsubscribe: boolean;
  reports: IncomingReport[];
  /** Message-ID of the mail that was returned or answered, without angle brackets. */
  originalMessageId: string | null;
  /** RFC 3461 ENVID, as reported. */
  originalEnvelopeId: string | null;
  /** `X-Postrider-Id` of the returned part; the caller verifies its signature. */
  postriderId: string | null;
  /** `Feedback-ID` of the returned part, which is not signed. */
  feedbackId: string | null;
  /** Address of From in the returned part. */
  originalFrom: string | null;
  /** The report of a mail of kind `dmarc-report`; null when it was not opened or could not be read. */
  aggregate: AggregateReport | null;
  /** The report of a mail of kind `tls-report`; null when it was not opened or could not be read. */
  tls: TlsReport | null;
  /** Why an announced report was not read. */
  problem: ReportProblem | null;
}

export interface ParseOptions {
  limits?: IncomingLimits;
  /**
   * Whether attachments are opened to find a DMARC or TLS report. That is the expensive part of parsing a mail, so the
   * listener allows it only for the addresses that receive reports.
   */
  opensReports?: boolean;
  /** The rules of the operator for replies, which precede the built-in ones. Default: none. */
  byRules?: ClassifyByRules;
}

/** Parses a received mail. Malformed mail is no error: what cannot be read is missing in the result. */
export function parseIncoming(raw: Buffer, options: ParseOptions = {}): ParsedIncoming {
  const { limits = INCOMING_LIMITS, opensReports = true, byRules = () => null } = options;
  const mail = readMail(raw, limits);
  const parts = sortParts(mail, limits);
  const head = withDecodedSubject(mail.fields);
  return {
    ...EMPTY,
    from: firstAddress(head.get('from')),
    isAutomatic: /^auto-/i.test(head.get('auto-submitted')),
    asksToUnsubscribe: asksToUnsubscribe(head),
    ...idsOf(head, parts),
    ...readKind(mail, head, parts, { limits, opensReports, byRules }),
  };
}

function asksToUnsubscribe(head: Fields): boolean {
  return /^unsubscribe\b/i.test(head.get('subject'));
}

/** Tries the most reliable forms first: a machine-readable part decides the kind, whatever the text states. */
function readKind(
  mail: Part,
  head: Fields,
  parts: ReturnedMail,
  { limits, opensReports, byRules }: Required<ParseOptions>,
): Partial<ParsedIncoming> {
  const complaint = readComplaint(head, parts, limits);
  if (complaint) return { kind: 'arf', reports: complaint.reports, originalEnvelopeId: complaint.envelopeId };
  const attached = parts.statusTexts.length > 0 ? null : readAttachedReport(mail, limits, opensReports);
  if (attached) return attached;
  const notification = readSesNotification(parts.lines);
  if (notification) return fromSes(notification, byRules);
  const reply = readAutoReply(head, parts);
  if (reply) return { kind: 'auto-reply', reports: [reply] };
  const dsn = readDeliveryReport(head, parts, limits, byRules);
  if (dsn) return { kind: 'dsn', reports: dsn.reports, originalEnvelopeId: dsn.envelopeId };
  // Requests of mail clients and providers declare themselves as generated, too.
  const generated = asksToUnsubscribe(head) ? null : readGeneratedReply(head, parts);
  return generated ? { kind: 'auto-reply', reports: [generated] } : {};
}

const EMPTY: ParsedIncoming = {
  kind: 'unknown',
  from: '',
  isAutomatic: false,
  asksToUnsubscribe: false,
  reports: [],
  originalMessageId: null,
  originalEnvelopeId: null,
  postriderId: null,
  feedbackId: null,
  originalFrom: null,
  aggregate: null,
  tls: null,
  problem: null,
};

/**
 * Parses a file of one mail, an mbox, or a DMARC or TLS report as it is attached to mail. The result for an mbox has the
 * kind and the ids of its first mail, and the reports of all.
 */
export function parseFile(file: Buffer, limits: IncomingLimits = INCOMING_LIMITS): ParsedIncoming {
  const { report } = isReportFile(file) ? readReportFile(file, limits) : { report: null };
  if (report) return { ...EMPTY, ...report };
  const [first, ...others] = splitMbox(file, MAX_MBOX_MAILS);
  const parsed = parseIncoming(first ?? file, { limits });
  const reports = others.flatMap((mail) => parseIncoming(mail, { limits }).reports);
  return { ...parsed, reports: [...parsed.reports, ...reports] };
}

/** Whether the file begins as gzip, zip, XML or JSON, which no mail does. */
function isReportFile(file: Buffer): boolean {
  const start = file.subarray(0, 200).toString('latin1');
  return (
    start.startsWith('\x1f\x8b') ||
    start.startsWith('PK\x03\x04') ||
    /^[\s\xef\xbb\xbf\xff\xfe\0]*[<{]/.test(start)
  );
}

const MAX_MBOX_MAILS = 50;

/** The mails of a file that begins with an mbox separator line; any other file is one mail. */
function splitMbox(file: Buffer, maxMails: number): Buffer[] {
  if (file.subarray(0, 5).toString('latin1') !== 'From ') return [file];
  const mails: Buffer[] = [];
  let from = 0;
  for (
    let at = file.indexOf(MBOX_SEPARATOR, 1);
    at >= 0 && mails.length < maxMails - 1;
    at = file.indexOf(MBOX_SEPARATOR, at + 1)
  ) {
    if (!isMboxSeparator(file, at + 1)) continue;
    mails.push(file.subarray(from, at + 1));
    from = at + 1;
  }
  return [...mails, file.subarray(from)];
}

const MBOX_SEPARATOR = '\nFrom ';

/** `From a@example.com Thu Apr 29 23:34:45 2015`: ends with the time and the year. */
function isMboxSeparator(file: Buffer, at: number): boolean {
  const end = file.indexOf(0x0a, at);
  const line = file.subarray(at, Math.min(end < 0 ? file.length : end, at + 400)).toString('latin1');
  return /\d\d:\d\d:\d\d (?:[+-]\d{4} |[A-Z]{3,4} )?\d{4}\s*$/.test(line);
}

function fromSes(
  { kind, groups, feedbackType, messageId }: SesNotification,
  byRules: ClassifyByRules,
): Partial<ParsedIncoming> {
  return kind === 'complaint'
    ? {
        kind: 'arf',
        reports: groups.map(({ recipient }) => complaintOf(recipient, feedbackType)),
        originalMessageId: messageId,
      }
    : {
        kind: 'dsn',
        reports: groups.map((group) => classifyGroup(group, byRules)),
        originalMessageId: messageId,
      };
}

function idsOf(
  mail: Fields,
  parts: ReturnedMail,
): Pick<ParsedIncoming, 'originalMessageId' | 'postriderId' | 'feedbackId' | 'originalFrom'> {
  const messageId = parts.original.get('message-id') || mail.get('in-reply-to');
  return {
    originalMessageId: /<?([^<>\s]{1,500})>?/.exec(messageId)?.[1] ?? null,
    postriderId: parts.original.get('x-postrider-id').slice(0, 500) || null,
    feedbackId: parts.original.get('feedback-id').slice(0, 500) || null,
    originalFrom: firstAddress(parts.original.get('from')).slice(0, 500) || null,
  };
}

function withDecodedSubject(fields: Fields): Fields {
  const subject = decodeWords(fields.get('subject'));
  return { ...fields, get: (name) => (name === 'subject' ? subject : fields.get(name)) };
}

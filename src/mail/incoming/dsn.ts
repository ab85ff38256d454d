import type { ClassifyByRules } from '../classify/classifier.ts';
import { isDelayNotice, isDeliveryNotice, isReply } from './auto-reply.ts';
import { classifyGroup, classifyRecipient } from './classify-report.ts';
import { type DeliveryStatus, readDeliveryStatus } from './delivery-status.ts';
import { type Fields, firstAddress, withoutRoute } from './fields.ts';
import type { IncomingLimits } from './limits.ts';
import type { ReturnedMail } from './notice.ts';
import { isAddress, type NoticeEntry, readEntries, sameAddress } from './notice-entries.ts';
import { replyCode } from './quoted-reply.ts';
import type { IncomingReport } from './report.ts';

/**
 * Parses delivery status notifications: the standard form (RFC 3464), and notices as text, which some servers still
 * send. The machine-readable fields name the failed recipients; the text is often more specific about the reason and the
 * SMTP command.
 */
export interface DeliveryReport {
  reports: IncomingReport[];
  envelopeId: string | null;
}

/** Null when the mail is not a delivery report. */
export function readDeliveryReport(
  mail: Fields,
  allParts: ReturnedMail,
  limits: IncomingLimits,
  byRules: ClassifyByRules,
): DeliveryReport | null {
  const parts = withoutQuotedLines(mail, allParts);
  const status = readStatus(parts, limits);
  const notice = withoutQuotedHeaders(parts.lines);
  const entries = readEntries(notice, limits.reports);
  if (status.groups.length > 0) {
    const reports = fromGroups(status, entries, parts, notice, byRules);
    if (reports.length > 0) return { reports, envelopeId: status.envelopeId || null };
  }
  if (!isDeliveryNotice(mail, parts, entries)) return null;
  const reports = fromText(mail, parts, entries, notice, byRules).slice(0, limits.reports);
  return { reports, envelopeId: status.envelopeId || null };
}

/**
 * A reply without the lines that it quotes: text of the answered mail is no evidence. A standard report is unchanged:
 * some servers refer to the returned message in its In-Reply-To.
 */
function withoutQuotedLines(mail: Fields, parts: ReturnedMail): ReturnedMail {
  if (parts.statusTexts.length > 0 || !isReply(mail)) return parts;
  const own = (lines: readonly string[]) => lines.filter((line) => !/^[ \t]*>/.test(line));
  return { ...parts, lines: own(parts.lines), below: own(parts.below) };
}

/** Characters of a notice that are classified. */
const MAX_NOTICE_LENGTH = 4000;

/** Header fields that never explain a failure; fields such as `X-Failed-Recipients` name recipients. */
const QUOTED_HEADER =
  /^[> \t]*(?:x-(?!.*recipient)[\w-]+|received-spf|authentication-results|dkim-signature|arc-[\w-]+|list-[\w-]+|subject|precedence):/i;

/**
 * The notice without quoted header fields of the returned message: `X-Spam: yes` was added in transit and does not
 * explain the failure.
 */
function withoutQuotedHeaders(lines: readonly string[]): string[] {
  let inField = false;
  return lines.filter((line) => {
    inField = QUOTED_HEADER.test(line) || (inField && /^>*[ \t]+\S/.test(line));
    return !inField;
  });
}

/** The delivery-status parts; else the same fields in the notice, or below it in a forwarded report. */
function readStatus(parts: ReturnedMail, limits: IncomingLimits): DeliveryStatus {
  const fromParts = readDeliveryStatus(parts.statusTexts.join('\n\n'), limits);
  if (fromParts.groups.length > 0) return fromParts;
  for (const place of [parts.lines, parts.below]) {
    const lines = place.map((line) => line.replace(/^(?:> ?)+/, ''));
    if (lines.some((line) => /^(?:final|original)-recipient:/i.test(line)))
      return readDeliveryStatus(lines.join('\n'), limits);
  }
  return fromParts;
}

function fromGroups(
  status: DeliveryStatus,
  entries: readonly NoticeEntry[],
  parts: ReturnedMail,
  notice: readonly string[],
  byRules: ClassifyByRules,
): IncomingReport[] {
  const text = notice.join(' ').slice(0, MAX_NOTICE_LENGTH);
  return status.groups.map((group) => {
    const entry = entries.find(
      ({ recipient }) =>
        sameAddress(recipient, group.recipient) || sameAddress(recipient, group.originalRecipient),
    );
    const recipient = group.recipient || entry?.recipient || firstAddress(parts.original.get('to'));
    return classifyGroup({ ...group, recipient }, byRules, {
      explanation: entry?.text ?? '',
      notice: status.groups.length === 1 ? text : '',
      reportingMta: status.reportingMta,
      isComplete:
        status.reportingMta !== '' &&
        group.action !== '' &&
        (group.diagnosticType !== '' || replyCode(group.diagnostic) > 0),
    });
  });
}

function fromText(
  mail: Fields,
  parts: ReturnedMail,
  entries: readonly NoticeEntry[],
  notice: readonly string[],
  byRules: ClassifyByRules,
): IncomingReport[] {
  const noticeText = notice.join(' ').slice(0, MAX_NOTICE_LENGTH);
  const action = isDelayNotice(mail, parts) ? 'delayed' : 'failed';
  const rows = failedRecipients(mail, parts, entries);
  return rows.map(({ recipient, text }) => {
    const evidence = {
      recipient,
      action,
      status: null,
      diagnostic: text,
      comment: '',
      explanation: '',
      notice: rows.length === 1 ? noticeText : '',
      remoteMta: null,
      reportingMta: '',
      isComplete: false,
    };
    return classifyRecipient(evidence, byRules);
  });
}

/** The failed recipients, from the most reliable source that names any. */
function failedRecipients(
  mail: Fields,
  parts: ReturnedMail,
  entries: readonly NoticeEntry[],
): { recipient: string; text: string }[] {
  const named = recipientsOf(mail);
  if (named.length > 0) return named.map((recipient) => ({ recipient, text: textFor(recipient, entries) }));
  const strong = withoutRepeats(entries.filter(({ isWeak }) => !isWeak));
  if (strong.length > 0) return strong;
  const weak = entries.find(({ isWeak }) => isWeak);
  return [weak ?? { recipient: firstAddress(parts.original.get('to')), text: '' }];
}

function textFor(recipient: string, entries: readonly NoticeEntry[]): string {
  return entries.find((entry) => sameAddress(entry.recipient, recipient))?.text ?? '';
}

function withoutRepeats(entries: readonly NoticeEntry[]): NoticeEntry[] {
  return entries.filter(
    (entry, i) => entries.findIndex(({ recipient }) => sameAddress(recipient, entry.recipient)) === i,
  );
}

/** `X-Failed-Recipients` (Exim, Gmail and others); several fields or several addresses in one. */
function recipientsOf(mail: Fields): string[] {
  const found = mail.all('x-failed-recipients').flatMap((value) =>
    value
      .split(/[\s,]+/)
      .map(withoutRoute)
      .filter(isAddress),
  );
  return found.filter((recipient, i) => found.findIndex((other) => sameAddress(other, recipient)) === i);
}

import { type DeliveryStatus, readDeliveryStatus } from './delivery-status.ts';
import type { Fields } from './fields.ts';
import { judge, judgeGroup } from './judge.ts';
import type { IncomingLimits } from './limits.ts';
import type { ReturnedMail } from './notice.ts';
import { isAddress, type NoticeEntry, readEntries, sameAddress } from './notice-entries.ts';
import { looksLikeNotice, speaksOfDelay } from './recognise.ts';
import type { IncomingReport } from './report.ts';

/**
 * Delivery status notifications: the standard form (RFC 3464) and the notices in words that servers wrote
 * before it and still write. The fields for machines say who failed; the words for people often say better
 * why, and at which command.
 */
export interface DeliveryReport {
  reports: IncomingReport[];
  envelopeId: string | null;
}

/** Null when this is no delivery report. */
export function readDeliveryReport(
  mail: Fields,
  parts: ReturnedMail,
  limits: IncomingLimits,
): DeliveryReport | null {
  const status = readStatus(parts, limits);
  const notice = withoutQuotedHeaders(parts.lines);
  const entries = readEntries(notice, limits.reports);
  if (status.groups.length > 0) {
    const reports = fromGroups(status, entries, parts, notice);
    if (reports.length > 0) return { reports, envelopeId: status.envelopeId || null };
  }
  if (!looksLikeNotice(mail, parts, entries)) return null;
  const reports = fromWords(mail, parts, entries, notice).slice(0, limits.reports);
  return { reports, envelopeId: status.envelopeId || null };
}

/** Header fields that no server explains a failure with; `X-Failed-Recipients` and the like name recipients. */
const QUOTED_HEADER =
  /^[> \t]*(?:x-(?!.*recipient)[\w-]+|received-spf|authentication-results|dkim-signature|arc-[\w-]+|list-[\w-]+|subject|precedence):/i;

/**
 * The notice without header fields of the returned message that it quotes: `X-Spam: yes` was added on the
 * message's way and says nothing about why it came back.
 */
function withoutQuotedHeaders(lines: readonly string[]): string[] {
  let inField = false;
  return lines.filter((line) => {
    inField = QUOTED_HEADER.test(line) || (inField && /^[> ]*[ \t]+\S/.test(line));
    return !inField;
  });
}

/** The proper parts; else the same fields where they stand among the words, or below them in a forwarded report. */
function readStatus(parts: ReturnedMail, limits: IncomingLimits): DeliveryStatus {
  const proper = readDeliveryStatus(parts.statusTexts.join('\n\n'), limits);
  if (proper.groups.length > 0) return proper;
  for (const place of [parts.lines, parts.below]) {
    const lines = place.map((line) => line.replace(/^(?:> ?)+/, ''));
    if (lines.some((line) => /^(?:final|original)-recipient:/i.test(line)))
      return readDeliveryStatus(lines.join('\n'), limits);
  }
  return proper;
}

function fromGroups(
  status: DeliveryStatus,
  entries: readonly NoticeEntry[],
  parts: ReturnedMail,
  notice: readonly string[],
): IncomingReport[] {
  const words = notice.join(' ').slice(0, 4000);
  return status.groups.map((group) => {
    const entry = entries.find(
      ({ recipient }) =>
        sameAddress(recipient, group.recipient) || sameAddress(recipient, group.originalRecipient),
    );
    const recipient = group.recipient || entry?.recipient || firstAddress(parts.original.get('to'));
    return judgeGroup(
      { ...group, recipient },
      {
        words: entry?.text ?? '',
        notice: status.groups.length === 1 ? words : '',
        reportingMta: status.reportingMta,
      },
    );
  });
}

function fromWords(
  mail: Fields,
  parts: ReturnedMail,
  entries: readonly NoticeEntry[],
  notice: readonly string[],
): IncomingReport[] {
  const words = notice.join(' ').slice(0, 4000);
  const action = speaksOfDelay(mail, parts) ? 'delayed' : 'failed';
  const rows = rowsIn(mail, parts, entries);
  return rows.map(({ recipient, text }) =>
    judge({
      recipient,
      action,
      status: null,
      diagnostic: text,
      comment: '',
      words: '',
      notice: rows.length === 1 ? words : '',
      remoteMta: null,
      reportingMta: '',
    }),
  );
}

/** Who failed, by the surest source that names anyone. */
function rowsIn(
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
  const found = mail.all('x-failed-recipients').flatMap((value) => value.split(/[\s,]+/).filter(isAddress));
  return found.filter((recipient, i) => found.findIndex((other) => sameAddress(other, recipient)) === i);
}

/** '' when the text names none. */
export function firstAddress(value: string): string {
  return /[^\s<>(),;:"]{1,100}@[^\s<>(),;:"]{1,255}/.exec(value)?.[0] ?? '';
}

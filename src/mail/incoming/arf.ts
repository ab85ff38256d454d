import { addressesIn, type Fields, readHeaderFields } from './fields.ts';
import type { IncomingLimits } from './limits.ts';
import type { ReturnedMail } from './notice.ts';
import { sameAddress } from './notice-entries.ts';
import { type IncomingReport, NO_BOUNCE } from './report.ts';

/**
 * Parses complaints: abuse reports in the Abuse Reporting Format (RFC 5965, with RFC 6591 failure reports), and the older
 * form in which a provider returns the message from its complaint address. Recipients are often redacted; then only the
 * signed id in the returned message identifies the recipient.
 */
export interface Complaint {
  reports: IncomingReport[];
  envelopeId: string | null;
}

/** Null when the mail is not a complaint. */
export function readComplaint(mail: Fields, parts: ReturnedMail, limits: IncomingLimits): Complaint | null {
  const text = parts.feedbackTexts[0] ?? feedbackInText(parts.lines);
  if (text === undefined) return readInformal(mail, parts);
  const feedback = readHeaderFields(text.replaceAll(/\n{2,}/g, '\n'), limits);
  const named = distinct(feedback.all('original-rcpt-to').flatMap(addressesIn));
  const recipients =
    named.length > 0
      ? named
      : [onlyAddress(feedback.get('removal-recipient')) || recipientOf(parts.original)];
  const feedbackType = feedback.get('feedback-type').toLowerCase() || 'other';
  return {
    reports: recipients
      .slice(0, limits.reports)
      .map((recipient) => complaint(recipient, feedbackType, feedback)),
    envelopeId: bare(feedback.get('original-envelope-id')) || null,
  };
}

/** The fields of a feedback report sent as plain text. */
function feedbackInText(lines: readonly string[]): string | undefined {
  const at = lines.findIndex((line) => /^feedback-type: ?[a-z-]+$/i.test(line.trim()));
  return at < 0 || !lines.some((line) => /^user-agent:/i.test(line)) ? undefined : lines.slice(at).join('\n');
}

/** Complaints of Hotmail, and of gateways that send the text of a feedback report without its parts. */
function readInformal(mail: Fields, parts: ReturnedMail): Complaint | null {
  // Apple Mail's unsubscribe button sends such a mail when the message has no List-Unsubscribe field.
  if (mail.get('x-apple-unsubscribe').toLowerCase() === 'true') {
    return { reports: [complaint(onlyAddress(mail.get('from')), 'opt-out', mail)], envelopeId: null };
  }
  const subject = mail.get('subject').toLowerCase();
  const isComplaint =
    subject.startsWith('complaint about message from') ||
    subject.startsWith('email feedback report for ip') ||
    mail.get('content-type').toLowerCase().includes('report-type=feedback-report') ||
    mail.get('content-type').toLowerCase().includes('report-type="feedback-report"');
  if (!isComplaint) return null;
  return { reports: [complaint(recipientOf(parts.original), 'abuse', mail)], envelopeId: null };
}

function complaint(recipient: string, feedbackType: string, feedback: Fields): IncomingReport {
  const agent = feedback.get('user-agent');
  const report = complaintOf(recipient, feedbackType);
  return {
    ...report,
    diagnostic: agent ? `${feedbackType} (${agent})`.slice(0, 2000) : feedbackType,
    remoteMta: hostIn(feedback.get('reporting-mta')),
  };
}

/** The report of a complaint without further details. */
export function complaintOf(recipient: string, feedbackType: string): IncomingReport {
  return {
    ...NO_BOUNCE,
    recipient,
    action: 'complained',
    diagnostic: feedbackType,
    feedbackType,
  };
}

/** Hotmail names its user in `X-HmXmrOriginalRecipient`. */
function recipientOf(original: Fields): string {
  return onlyAddress(original.get('x-hmxmroriginalrecipient') || original.get('to'));
}

/** The address of a field that names one recipient; '' for a phrase or a list, of which nobody knows who complained. */
function onlyAddress(value: string): string {
  const [, bracketed = ''] = /^[^,<]{0,998}<([^<>\s]{1,320})>[^,<]{0,998}$/.exec(value) ?? [];
  const [first = '', ...others] = distinct(addressesIn(bracketed || value.replaceAll(/"[^"]{0,998}"/g, ' ')));
  return others.length === 0 ? first : '';
}

/** Without regard to case. */
function distinct(addresses: readonly string[]): string[] {
  return addresses.filter((address, i) => addresses.findIndex((other) => sameAddress(address, other)) === i);
}

function bare(value: string): string {
  return (/<([^<>\s]{1,320})>/.exec(value)?.[1] ?? value.trim()).slice(0, 320);
}

function hostIn(value: string): string | null {
  const host =
    value
      .replace(/^\s*[\w-]{1,20}\s*;\s*/, '')
      .split(/[\s(]/, 1)[0]
      ?.toLowerCase() ?? '';
  return host === '' ? null : host;
}

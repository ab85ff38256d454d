import { domainOf, normalizeDomain } from '../mail/address.ts';
import type { StatedSource } from '../mail/feedback-id.ts';
import { addressKey, emailIdentifier } from '../mail/identifier.ts';
import type { IncomingKind } from '../mail/incoming/parse.ts';
import type { IncomingReport } from '../mail/incoming/report.ts';
import type { MessageRow } from '../store/messages/messages.ts';
import type { Tables } from '../store/tables.ts';
import { isErased } from './erased.ts';
import type { MessageEvent } from './event-types.ts';
import type { KnownMovedMessage, MovedEvent, Recorder } from './record.ts';

/**
 * A report that arrived by mail about one message. The caller has verified the signed token that names the message.
 *
 * Everyone who has a copy of a message can read its header, so a token from the header proves only that. A report is
 * therefore `verified` only with further evidence: a bounce was sent to the envelope sender's address, a complaint is
 * signed by the organization that received the message. An unverified report is also recorded, but suppresses only
 * within the limits of effects.ts.
 */
export interface MessageReport {
  kind: IncomingKind;
  reports: readonly IncomingReport[];
  /** Equal for copies of one report, whatever route they took. */
  fingerprint: Buffer;
  verified: boolean;
}

/** The recipient of a message; see `isErased`. */
type Addressee = Pick<MessageRow, 'recipient' | 'recipient_hash'>;

/** recorded: as a new event. known: it was recorded before. none: the report changes no message. */
export type ReportResult = 'recorded' | 'known' | 'none';

/** Applies a report to its message, in a unit of work. A report that arrives again has no effect. */
export function applyReport(
  recorder: Recorder,
  tables: Tables,
  message: MessageRow,
  messageReport: MessageReport,
  at: number,
): ReportResult {
  // A report about a message that was never sent is forged.
  if (message.sent_at === null) return 'none';
  const record = (event: MessageEvent): ReportResult =>
    recorder.message(tables, message, event, { reported: true }) ? 'recorded' : 'known';
  const { kind, reports, fingerprint, verified } = messageReport;
  const severe = severeEvent(message, messageReport);
  if (severe !== null) return record(severe);
  const report = kind === 'dsn' ? reportFor(message, reports) : undefined;
  if (report === undefined) return 'none';
  const { classification } = report;
  const fields = reportFields(message, report);
  if (report.action !== 'delayed')
    return record({ kind: 'email_delivered', fields: { ...fields, verified } });
  if (tables.delayNotices.count(message.seq) >= MAX_DELAY_NOTICES) return 'known';
  if (!tables.delayNotices.add(message.seq, fingerprint, at)) return 'known';
  return record({ kind: 'email_delayed', fields: { classification, ...fields, verified } });
}

/**
 * Applies a report to a message that another installation sent, from which the account came: a bounce and a complaint,
 * once each. Its state and its delays are not known here.
 */
export function applyReportToMoved(
  recorder: Recorder,
  tables: Tables,
  message: KnownMovedMessage,
  report: Omit<MessageReport, 'fingerprint'>,
): ReportResult {
  const addressee = { recipient: message.recipient_hash, recipient_hash: message.recipient_hash };
  const event = severeEvent(addressee, report);
  if (event === null) return 'none';
  return recorder.moved(tables, message, event) ? 'recorded' : 'known';
}

/** A complaint about a message that is not known. */
interface UnknownReport extends Pick<MessageReport, 'reports' | 'fingerprint'> {
  /** Address of From in the message. */
  originalFrom: string | null;
  receiver: string;
}

/** The number that stands for it among the reports that were recorded. */
const NO_MESSAGE = 0;

/**
 * Applies a complaint about a message that is not known: its id was removed from the report, or it was deleted. What its
 * Feedback-ID states is not proven: the caller has verified that an operator of a feedback loop signed the report, whose domain is
 * `receiver`. Returns `none` when it names no account and campaign of this installation.
 */
export function applyComplaintByFeedbackId(
  recorder: Recorder,
  tables: Tables,
  stated: StatedSource,
  { reports, originalFrom, fingerprint, receiver }: UnknownReport,
  at: number,
): ReportResult {
  const [report] = reports;
  const feedbackType = report?.feedbackType ?? 'abuse';
  const accountId = stated.accountIds.find((id) => tables.accounts.get(id) !== null);
  if (accountId === undefined || NOT_COMPLAINTS.has(feedbackType)) return 'none';
  const { id, stream } = stated;
  const isCampaign = id !== null && tables.campaigns.get(accountId, id) !== null;
  const isGroup = id !== null && !isCampaign && tables.subscriptionGroups.get(accountId, id) !== null;
  if (id !== null && !isCampaign && !isGroup) return 'none';
  const name = originalFrom === null ? null : normalizeDomain(domainOf(originalFrom));
  const domain =
    name === null ? undefined : tables.domains.named(accountId, name).find((row) => row.use_case === stream);
  // No message shows that a copy of the report was recorded before.
  if (!tables.delayNotices.add(NO_MESSAGE, fingerprint, at)) return 'known';
  recorder.complainedUnknown(
    tables,
    {
      accountId,
      stream,
      campaignId: isCampaign ? id : null,
      subscriptionGroupId: isGroup ? id : null,
      domainId: domain?.domain_id ?? null,
      recipient: addressKey(report?.recipient ?? ''),
      receiver,
    },
    { source: 'arf', feedbackType, verified: true },
  );
  return 'recorded';
}

/** The complaint or the bounce that a report is about; null: neither. */
function severeEvent(
  message: Addressee,
  { kind, reports, verified }: Omit<MessageReport, 'fingerprint'>,
): MovedEvent | null {
  if (kind === 'arf') {
    const feedbackType = reports[0]?.feedbackType ?? 'abuse';
    if (NOT_COMPLAINTS.has(feedbackType)) return null;
    return { kind: 'email_complained', fields: { source: 'arf', feedbackType, verified } };
  }
  const report = kind === 'dsn' ? reportFor(message, reports) : undefined;
  return report?.action === 'failed' ? bounce(message, report, verified) : null;
}

/** Types of feedback that are not complaints of a person (RFC 5965 §3.1, RFC 6430, RFC 6591). */
const NOT_COMPLAINTS: ReadonlySet<string> = new Set(['not-spam', 'auth-failure', 'dmarc']);

/** Delays recorded for a message. No server sends as many; anyone with a copy of the mail could send more. */
const MAX_DELAY_NOTICES = 20;

/** Actions that are recorded (RFC 3464 §2.3.3), the most severe last. */
const ACTIONS: readonly string[] = ['expanded', 'relayed', 'delivered', 'delayed', 'failed'];

/**
 * The report about a message. Of several, those that name its recipient precede the others, which are about members of
 * a list or about addresses that the recipient forwards to.
 */
function reportFor(message: Addressee, reports: readonly IncomingReport[]): IncomingReport | undefined {
  const relevant = reports.filter(({ action }) => ACTIONS.includes(action));
  const own = relevant.filter(({ recipient }) => isRecipient(message, recipient));
  const candidates = own.length > 0 ? own : relevant;
  return candidates.toSorted((a, b) => ACTIONS.indexOf(b.action) - ACTIONS.indexOf(a.action))[0];
}

/** Compares hashes, because the address of an erased person is not stored. */
function isRecipient(message: Addressee, address: string): boolean {
  const domain = normalizeDomain(domainOf(address)) ?? domainOf(address);
  const local = address.slice(0, address.lastIndexOf('@'));
  return emailIdentifier(`${local}@${domain}`) === message.recipient_hash;
}

function bounce(
  message: Addressee,
  report: IncomingReport,
  verified: boolean,
): Extract<MessageEvent, { kind: 'email_bounced' }> {
  const { scope, suppress, classification, bounceType } = report;
  // The failure was at another address, to which our recipient forwards: one report does not prove it for ours.
  const isForwarded = report.recipient !== '' && !isRecipient(message, report.recipient);
  const isUnproven = isForwarded || !verified;
  return {
    kind: 'email_bounced',
    fields: {
      bounceType: bounceType ?? 'soft',
      classification,
      ...reportFields(message, report),
      verified,
    },
    effect: { scope, suppress: isUnproven && suppress === 'now' ? 'second-time' : suppress },
  };
}

/** The fields of an SMTP reply. A diagnostic usually names the recipient, so that of an erased person is empty. */
function reportFields(message: Addressee, report: IncomingReport) {
  return {
    smtpCode: report.replyCode === null ? null : Number(report.replyCode),
    enhancedCode: report.status === '' ? null : report.status,
    diagnostic: isErased(message) ? '' : report.diagnostic,
    remoteMta: report.remoteMta,
    source: 'dsn' as const,
  };
}

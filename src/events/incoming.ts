import { domainOf, normalizeDomain } from '../mail/address.ts';
import { emailIdentifier } from '../mail/identifier.ts';
import type { IncomingKind } from '../mail/incoming/parse.ts';
import type { IncomingReport } from '../mail/incoming/report.ts';
import type { MessageRow } from '../store/messages/messages.ts';
import type { Tables } from '../store/tables.ts';
import type { EventData, Recorder } from './record.ts';

/**
 * Applies a report that came in by mail to the message that it proved to be about; the caller has checked the
 * proof (a signed token). Reports are second-hand, so they are believed less than a server's own reply, and
 * each counts once however often it comes.
 *
 * A message's headers are known to everybody it was passed on to, and the tokens in them prove no more than
 * that. A report is therefore `verified` when more speaks for it: a bounce came to the envelope sender's
 * address, a complaint is signed by the organization that received the message. Without that it is recorded
 * all the same, and suppresses only within the limits that effects.ts names.
 */
export interface CameBack {
  kind: IncomingKind;
  reports: readonly IncomingReport[];
  /** The same for the same report sent twice, whatever way it took. */
  fingerprint: Buffer;
  verified: boolean;
}

/** recorded: it is an event now. known: it was one before. none: nothing in it changes a message. */
export type Effect = 'recorded' | 'known' | 'none';

/** Applies a report to its message, in a unit of work. */
export function applyReport(
  recorder: Recorder,
  tables: Tables,
  message: MessageRow,
  cameBack: CameBack,
  at: number,
): Effect {
  // Nobody has seen a message that was never sent: whatever this is, it is not about a delivery.
  if (message.sent_at === null) return 'none';
  if (cameBack.kind === 'arf') return applyComplaint(recorder, tables, message, cameBack);
  if (cameBack.kind !== 'dsn') return 'none';
  const { verified } = cameBack;
  const report = reportFor(message, cameBack.reports);
  if (report === undefined) return 'none';
  switch (report.action) {
    case 'failed':
      return effect(
        recorder.message(tables, message, 'email_bounced', bounceData(message, report, verified)),
      );
    case 'delayed':
      return applyDelay(recorder, tables, message, report, cameBack, at);
    default:
      return effect(
        recorder.message(tables, message, 'email_delivered', {
          fields: { ...reportFields(message, report), verified },
          reported: true,
        }),
      );
  }
}

function effect(recorded: boolean): Effect {
  return recorded ? 'recorded' : 'known';
}

/** RFC 5965 §3.1, RFC 6430, RFC 6591: feedback that is not a person's complaint. */
const NO_COMPLAINT: ReadonlySet<string> = new Set(['not-spam', 'auth-failure', 'dmarc']);

function applyComplaint(
  recorder: Recorder,
  tables: Tables,
  message: MessageRow,
  { reports, verified }: CameBack,
): Effect {
  const feedbackType = reports[0]?.feedbackType ?? 'abuse';
  if (NO_COMPLAINT.has(feedbackType)) return 'none';
  const fields = { source: 'arf', feedbackType, verified };
  return effect(recorder.message(tables, message, 'email_complained', { fields, reported: true }));
}

/** The gravest news last. Other actions than these say nothing that we could record. */
const GRAVITY: readonly string[] = ['expanded', 'relayed', 'delivered', 'delayed', 'failed'];

/**
 * The report about a message. Of several, those that name its recipient come first: the others are members of
 * a list, or where the recipient forwards to.
 */
function reportFor(message: MessageRow, reports: readonly IncomingReport[]): IncomingReport | undefined {
  const telling = reports.filter(({ action }) => GRAVITY.includes(action));
  const own = telling.filter(({ recipient }) => isRecipient(message, recipient));
  const candidates = own.length > 0 ? own : telling;
  return candidates.toSorted((a, b) => GRAVITY.indexOf(b.action) - GRAVITY.indexOf(a.action))[0];
}

/** By the hash, which is left when the person was erased. */
function isRecipient(message: MessageRow, address: string): boolean {
  const domain = normalizeDomain(domainOf(address)) ?? domainOf(address);
  const local = address.slice(0, address.lastIndexOf('@'));
  return emailIdentifier(`${local}@${domain}`) === message.recipient_hash;
}

/** Its recipient was erased: nothing may be written down that names them. */
export function isErased(message: Pick<MessageRow, 'recipient'>): boolean {
  return !message.recipient.includes('@');
}

function bounceData(message: MessageRow, report: IncomingReport, verified: boolean): EventData {
  const { scope, suppress } = report;
  const bounceType = report.bounceType ?? 'soft';
  // It failed behind our recipient, at an address that we never wrote to: once is no proof against ours.
  const isElsewhere = report.recipient !== '' && !isRecipient(message, report.recipient);
  const isDoubted = isElsewhere || !verified;
  const { classification } = report;
  return {
    fields: { bounceType, classification, ...reportFields(message, report), verified },
    bounce: {
      bounceType,
      scope,
      suppress: isDoubted && suppress === 'now' ? 'second-time' : suppress,
      verified,
    },
    reported: true,
  };
}

/** More than any server sends in the days that it tries; anybody with a copy of the mail could send more. */
const DELAYS_A_MESSAGE = 20;

function applyDelay(
  recorder: Recorder,
  tables: Tables,
  message: MessageRow,
  report: IncomingReport,
  { fingerprint, verified }: CameBack,
  at: number,
): Effect {
  if (tables.delayNotices.count(message.seq) >= DELAYS_A_MESSAGE) return 'known';
  if (!tables.delayNotices.add(message.seq, fingerprint, at)) return 'known';
  const fields = { classification: report.classification, ...reportFields(message, report), verified };
  return effect(recorder.message(tables, message, 'email_delayed', { fields, reported: true }));
}

/** In the words of an SMTP event; a diagnostic most often names the recipient. */
function reportFields(message: MessageRow, report: IncomingReport): Record<string, unknown> {
  return {
    smtpCode: report.replyCode === null ? null : Number(report.replyCode),
    enhancedCode: report.status === '' ? null : report.status,
    diagnostic: isErased(message) ? '' : report.diagnostic,
    remoteMta: report.remoteMta,
    source: 'dsn',
  };
}

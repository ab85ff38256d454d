import type { Config } from '../../config/schema.ts';
import { isErased } from '../../events/erased.ts';
import { applyComplaintByFeedbackId, applyReport, applyReportToMoved } from '../../events/incoming.ts';
import type { Recorder } from '../../events/record.ts';
import { domainOf } from '../../mail/address.ts';
import { readFeedbackId } from '../../mail/feedback-id.ts';
import { isReportingOrganization } from '../../mail/incoming/reports/reporting-organization.ts';
import type { AuthenticatedAuthor } from '../../mail/incoming/signatures.ts';
import type { SentMessage } from '../../mail/sent-mail.ts';
import type { Tokens } from '../../mail/tokens.ts';
import type { Context } from '../../store/context.ts';
import type { Box } from '../../store/kept-mail.ts';
import type { ListedMessage, MessageRow } from '../../store/messages/messages.ts';
import type { Tables } from '../../store/tables.ts';
import type { Unreadable } from '../parser/mail-parser.ts';
import type { IncomingResult } from '../parser/thread.ts';
import type { Purpose } from './rcpt-policy.ts';
import { storeReports } from './reports.ts';

export interface IncomingMail {
  raw: Buffer;
  /** MAIL FROM, '' for the null sender. */
  sender: string;
  recipients: readonly IncomingRecipient[];
  remoteAddress: string;
  /** Network of the client, for shares of the storage. */
  network: string;
  /** Null: not signed, or not verified. */
  signer: AuthenticatedAuthor | null;
}

export interface IncomingRecipient {
  address: string;
  purpose: Purpose;
}

/** What the MX listener uses of the context. */
export type MxContext = Pick<Context, 'clock' | 'monotonic' | 'log' | 'tables' | 'writer'> & {
  config: Pick<Config, 'hostname' | 'mx'> & { delivery: Pick<Config['delivery'], 'replies'> };
};

type ParseOutcome = IncomingResult | Unreadable;
type StoredReports = Awaited<ReturnType<typeof storeReports>>;

export interface IntakeOptions {
  recorder: Recorder;
  tokens: Pick<Tokens, 'signedId'>;
  /** Counts mail by purpose and result. */
  observe(purpose: string, result: string): void;
  /** Records that the recipient of this message unsubscribed; in a unit of work. */
  optOut(tables: Tables, message: SentMessage): void;
}

/** Resolves when the effects of the mail are durable. */
export type ApplyMail = (mail: IncomingMail, outcome: ParseOutcome) => Promise<void>;

/**
 * Applies a parsed mail: reports on domains are stored (reports.ts), then, in one unit of work, a report changes the
 * message that it proves to be about, and mail for a person is kept. The proof is the address that the mail was sent to,
 * else the id that we signed into the returned message; unsigned data is never a proof. How far a report is trusted
 * beyond that: events/incoming.ts.
 *
 * Keeps no state. Reports on domains are stored before the unit of work of the mail, so that they remain if it fails.
 * Each recipient of a mail is logged and observed after the commit.
 */
export function createIntake(
  { config, clock, log, writer }: MxContext,
  { recorder, tokens, observe, optOut }: IntakeOptions,
): ApplyMail {
  /** `stored`: results of the report by domain. `boxes`: those that already have this mail, one copy per mail and box. */
  function handle(
    tx: Tables,
    { purpose, address }: IncomingRecipient,
    mail: IncomingMail,
    outcome: ParseOutcome,
    { stored, boxes }: { stored: StoredReports; boxes: Set<Box> },
  ): Handled {
    const keep = (box: Box, message: MessageRow | null): Handled => {
      if (message !== null && isErased(message)) return { result: 'forgotten', message };
      if (boxes.has(box)) return { result: 'kept', message };
      boxes.add(box);
      tx.keptMail.insert({
        box,
        kind: kindOf(outcome),
        recipient: address,
        sender: mail.sender,
        remote_address: mail.remoteAddress,
        network: mail.network,
        message_seq: message?.seq ?? null,
        received_at: clock.now(),
        raw: mail.raw,
      });
      return { result: 'kept', message };
    };
    if ('messageId' in purpose) return forMessage(tx, purpose.kind, purpose.messageId, mail, outcome, keep);
    if ('domain' in purpose) {
      // Without a report, or with one on none of our domains, the mail is kept.
      const result = stored.get(purpose.domain) ?? 'foreign';
      return result === 'foreign' ? keep(purpose.kind, null) : { result, message: null };
    }
    const message = provenMessage(tx, outcome);
    const applied =
      message === null
        ? applyWithoutMessage(tx, mail.signer, outcome)
        : applyToMessage(tx, message, 'signed-id', mail.signer, outcome);
    if (purpose.kind === 'feedback-loop') return applied ?? keep('feedback', message);
    // Mail to the operator is always kept, too.
    const kept = keep(purpose.kind, message);
    return applied ?? kept;
  }

  /** Applies a mail to an address that we signed for this message. */
  function forMessage(
    tx: Tables,
    kind: 'bounce' | 'feedback' | 'unsubscribe',
    messageId: string,
    mail: IncomingMail,
    outcome: ParseOutcome,
    keep: (box: Box, message: MessageRow) => Handled,
  ): Handled {
    const message = tx.messages.byId(messageId);
    if (message === null) return forMovedMessage(tx, kind, messageId, mail, outcome);
    if (kind !== 'unsubscribe') {
      const proof = kind === 'bounce' ? 'return-path' : 'signed-id';
      return applyToMessage(tx, message, proof, mail.signer, outcome) ?? keep(kind, message);
    }
    if (!isOptOut(mail.sender, outcome)) return keep(kind, message);
    optOut(tx, message);
    return { result: 'opted-out', message };
  }

  /** Applies the mail to a message that its account sent before it came from another installation. */
  function forMovedMessage(
    tx: Tables,
    kind: 'bounce' | 'feedback' | 'unsubscribe',
    messageId: string,
    { sender, signer }: IncomingMail,
    outcome: ParseOutcome,
  ): Handled {
    const nothing = { result: 'no-such-message', message: null } as const;
    const moved = tx.movedMessages.byId(messageId);
    if (moved === null) return (kind === 'feedback' && applyWithoutMessage(tx, signer, outcome)) || nothing;
    if (kind === 'unsubscribe') {
      if (!isOptOut(sender, outcome)) return nothing;
      optOut(tx, { ...moved, simulated: 0 });
      return { result: 'opted-out', message: null };
    }
    if ('unreadable' in outcome) return nothing;
    const verified = outcome.parsed.kind === 'arf' ? isFromLoop(signer) : kind === 'bounce';
    const result = applyReportToMoved(recorder, tx, moved, { ...outcome.parsed, verified });
    return result === 'none' ? nothing : { result, message: null };
  }

  /** Null when the mail has no report that changes a message. */
  function applyToMessage(
    tx: Tables,
    message: ListedMessage,
    proof: 'return-path' | 'signed-id',
    signer: AuthenticatedAuthor | null,
    outcome: ParseOutcome,
  ): Handled | null {
    if ('unreadable' in outcome) return null;
    const { parsed, fingerprint } = outcome;
    const verified = parsed.kind === 'arf' ? isFromReceiver(tx, message, signer) : proof === 'return-path';
    const report = { ...parsed, fingerprint: Buffer.from(fingerprint), verified };
    const result = applyReport(recorder, tx, message, report, clock.now());
    return result === 'none' ? null : { result, message };
  }

  /**
   * Counts a complaint about a message that is not found, for the campaign that its Feedback-ID names. Null: the mail is none, or
   * nobody vouches for it.
   */
  function applyWithoutMessage(
    tx: Tables,
    signer: AuthenticatedAuthor | null,
    outcome: ParseOutcome,
  ): Handled | null {
    if ('unreadable' in outcome || outcome.parsed.kind !== 'arf' || !isFromLoop(signer)) return null;
    const { parsed, fingerprint } = outcome;
    const stated = parsed.feedbackId === null ? null : readFeedbackId(parsed.feedbackId, config.hostname);
    if (stated === null) return null;
    const report = { ...parsed, fingerprint: Buffer.from(fingerprint), receiver: signer.organization };
    const result = applyComplaintByFeedbackId(recorder, tx, stated, report, clock.now());
    return result === 'none' ? null : { result, message: null };
  }

  /** Whether an operator of a feedback loop signed it. Without the recipient's domain, only those who report for others are trusted. */
  function isFromLoop(signer: AuthenticatedAuthor | null): signer is AuthenticatedAuthor {
    const { feedbackLoops } = config.mx;
    return (
      signer !== null && isReportingOrganization(signer, { recipientDomain: '', mxHost: null, feedbackLoops })
    );
  }

  function isFromReceiver(tx: Tables, message: ListedMessage, signer: AuthenticatedAuthor | null): boolean {
    if (signer === null) return false;
    const recipientDomain = isErased(message) ? '' : domainOf(message.recipient).toLowerCase();
    const mxHost = deliveredTo(tx, message);
    return isReportingOrganization(signer, {
      recipientDomain,
      mxHost,
      feedbackLoops: config.mx.feedbackLoops,
    });
  }

  /** The message of the signed id in the returned part. */
  function provenMessage(tx: Tables, outcome: ParseOutcome): ListedMessage | null {
    const signed = 'unreadable' in outcome ? null : outcome.parsed.postriderId;
    const id = signed === null ? null : tokens.signedId(signed);
    return id === null ? null : tx.messages.byId(id);
  }

  /** Stores the report of a mail, if it has one and was sent to addresses for reports. */
  async function storeReport(
    recipients: readonly IncomingRecipient[],
    { network, signer }: IncomingMail,
    outcome: ParseOutcome,
  ): Promise<StoredReports> {
    if ('unreadable' in outcome) return new Map();
    const domains = recipients.flatMap(({ purpose }) => ('domain' in purpose ? [purpose.domain] : []));
    const origin = { hostname: config.hostname, now: clock.now(), network, signer };
    return storeReports(writer, origin, outcome.parsed, domains);
  }

  return async function apply(mail, outcome) {
    const recipients = distinct(mail.recipients);
    const stored = await storeReport(recipients, mail, outcome);
    const handled = await writer.run((tx) => {
      const boxes = new Set<Box>();
      return recipients.map((recipient) => ({
        recipient,
        ...handle(tx, recipient, mail, outcome, { stored, boxes }),
      }));
    }, 'received mail');
    const { remoteAddress } = mail;
    const omittedPolicies = ('parsed' in outcome && outcome.parsed.tls?.omittedPolicies) || undefined;
    for (const { recipient, result, message } of handled) {
      const fields = { purpose: recipient.purpose.kind, kind: kindOf(outcome), result, remoteAddress };
      log.info({ ...fields, omittedPolicies, message: message?.message_id }, 'mail received');
      observe(fields.purpose, result);
    }
  };
}

/**
 * Each purpose once, however its address is spelled. Those with a token come first, so that the strongest proof is
 * applied before a weaker one.
 */
function distinct(recipients: readonly IncomingRecipient[]): IncomingRecipient[] {
  const byPurpose = new Map<string, IncomingRecipient>();
  for (const recipient of recipients) {
    const key = JSON.stringify(recipient.purpose);
    if (!byPurpose.has(key)) byPurpose.set(key, recipient);
  }
  const isToken = ({ purpose }: IncomingRecipient) => 'messageId' in purpose;
  const all = [...byPurpose.values()];
  return [...all.filter(isToken), ...all.filter((recipient) => !isToken(recipient))];
}

/**
 * Whether a mail to an unsubscribe address is a request: everything that a person sends, but no bounce and no automatic
 * reply. Other automatic mail must ask for it in its subject, as clients and providers do that unsubscribe their users; the
 * requests of Apple Mail have kind `arf`.
 */
function isOptOut(sender: string, outcome: ParseOutcome): boolean {
  if ('unreadable' in outcome) return sender !== '';
  const { kind, isAutomatic, asksToUnsubscribe } = outcome.parsed;
  if (kind === 'dsn' || kind === 'auto-reply') return false;
  return kind === 'arf' || asksToUnsubscribe || (sender !== '' && !isAutomatic);
}

/** The host that the message was delivered to, null when it is not known. */
function deliveredTo(tx: Tables, message: MessageRow): string | null {
  const delivered = tx.events.ofMessage(message.seq).findLast(({ kind }) => kind === 'email_delivered');
  if (delivered === undefined) return null;
  const { remoteHost }: { remoteHost?: unknown } = JSON.parse(delivered.data);
  return typeof remoteHost === 'string' ? remoteHost : null;
}

function kindOf(outcome: ParseOutcome): string {
  return 'unreadable' in outcome ? `unread: ${outcome.unreadable}` : outcome.parsed.kind;
}

interface Handled {
  /** For the log and metrics. */
  result: 'recorded' | 'known' | 'kept' | 'opted-out' | 'no-such-message' | 'forgotten' | 'stored';
  message: MessageRow | null;
}

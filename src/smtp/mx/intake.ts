import type { Clock } from '../../core/clock.ts';
import type { Log } from '../../core/log.ts';
import { applyReport, isErased } from '../../events/incoming.ts';
import type { Recorder } from '../../events/record.ts';
import { domainOf } from '../../mail/address.ts';
import { isReportingOrganization } from '../../mail/incoming/reports/reporting-organization.ts';
import type { Signer } from '../../mail/incoming/signatures.ts';
import type { Tokens } from '../../mail/tokens.ts';
import type { Box } from '../../store/kept-mail.ts';
import type { ListedMessage, MessageRow } from '../../store/messages/messages.ts';
import type { Tables } from '../../store/tables.ts';
import type { Writer } from '../../store/writer.ts';
import type { Unreadable } from './parse-pool.ts';
import type { ReadIncoming } from './parse-worker.ts';
import type { Purpose } from './rcpt-policy.ts';
import { storeAggregate, storeTls } from './reports.ts';

/**
 * Applies a mail that was parsed, all of it in one unit of work: a report changes the message that it proves
 * to be about, reports on domains are stored, what a person should see is kept. The proof is the address the
 * mail came to, else the id that we signed into the message it returns; nothing unsigned ever counts. How far
 * a report is believed beyond that: events/incoming.ts.
 */
export interface Incoming {
  raw: Buffer;
  /** Of the envelope, '' for none. */
  sender: string;
  recipients: readonly Recipient[];
  remoteAddress: string;
  /** Network of the caller, by which storage is shared out. */
  network: string;
  /** Who signed it; null for nobody, or when it was not verified. */
  signer: Signer | null;
}

export interface Recipient {
  address: string;
  purpose: Purpose;
}

type Read = ReadIncoming | Unreadable;

export interface Intake {
  /** Resolves when it is on disk. */
  take(mail: Incoming, read: Read): Promise<void>;
}

export interface IntakeSettings {
  clock: Clock;
  log: Log;
  hostname: string;
  /** Domains that report complaints on behalf of other receivers (`mx.feedbackLoops`). */
  feedbackLoops: readonly string[];
  writer: Writer;
  recorder: Recorder;
  tokens: Pick<Tokens, 'signedId'>;
  /** Counts what came in, by what it came for and what became of it. */
  observe(purpose: string, result: string): void;
  /** In a unit of work: the recipient of this message wants no more of its kind. */
  optOut(tables: Tables, message: MessageRow): void;
}

export function createIntake(settings: IntakeSettings): Intake {
  const { clock, log, hostname, writer, recorder, tokens, feedbackLoops } = settings;

  /** `boxes` are those that this mail was put into already: one copy per mail and mailbox. */
  function handle(
    all: Tables,
    { purpose, address }: Recipient,
    mail: Incoming,
    read: Read,
    boxes: Set<Box>,
  ): Handled {
    const keep = (box: Box, message: MessageRow | null): Handled => {
      if (message !== null && isErased(message)) return { result: 'forgotten', message };
      if (boxes.has(box)) return { result: 'kept', message };
      boxes.add(box);
      all.keptMail.insert({
        box,
        kind: kindOf(read),
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
    if ('messageId' in purpose)
      return forMessage(all, purpose.kind, purpose.messageId, mail.signer, read, keep);
    if ('domain' in purpose) {
      const stored = storeReport(all, purpose.domain, mail, read);
      return stored === null ? keep(purpose.kind, null) : { result: stored, message: null };
    }
    const message = provenMessage(all, read);
    const applied = message === null ? null : apply(all, message, 'signed-id', mail.signer, read);
    if (purpose.kind === 'loop') return applied ?? keep('feedback', message);
    // The operator's own mail is kept whatever else it did.
    const kept = keep(purpose.kind, message);
    return applied ?? kept;
  }

  /** The mail came to an address that we signed for this message. */
  function forMessage(
    all: Tables,
    kind: 'bounce' | 'feedback' | 'unsubscribe',
    messageId: string,
    signer: Signer | null,
    read: Read,
    keep: (box: Box, message: MessageRow) => Handled,
  ): Handled {
    const message = all.messages.byId(messageId);
    if (message === null) return { result: 'no-such-message', message };
    if (kind !== 'unsubscribe') {
      const proof = kind === 'bounce' ? 'return-path' : 'signed-id';
      return apply(all, message, proof, signer, read) ?? keep(kind, message);
    }
    // Nobody unsubscribes by a bounce or an automatic reply: it is kept, and changes nothing.
    if (['dsn', 'auto-reply'].includes(kindOf(read))) return keep(kind, message);
    settings.optOut(all, message);
    return { result: 'opted-out', message };
  }

  /** Null when the mail holds nothing that changes a message. */
  function apply(
    all: Tables,
    message: ListedMessage,
    proof: 'return-path' | 'signed-id',
    signer: Signer | null,
    read: Read,
  ): Handled | null {
    if ('unreadable' in read) return null;
    const { parsed, fingerprint } = read;
    const verified = parsed.kind === 'arf' ? isFromReceiver(all, message, signer) : proof === 'return-path';
    const report = { ...parsed, fingerprint: Buffer.from(fingerprint), verified };
    const result = applyReport(recorder, all, message, report, clock.now());
    return result === 'none' ? null : { result, message };
  }

  function isFromReceiver(all: Tables, message: ListedMessage, signer: Signer | null): boolean {
    if (signer === null) return false;
    const recipientDomain = isErased(message) ? '' : domainOf(message.recipient).toLowerCase();
    const mxHost = deliveredTo(all, message);
    return isReportingOrganization(signer, { recipientDomain, mxHost, feedbackLoops });
  }

  /** The message that the returned part names, when we signed that. */
  function provenMessage(all: Tables, read: Read): ListedMessage | null {
    const signed = 'unreadable' in read ? null : read.parsed.postriderId;
    const id = signed === null ? null : tokens.signedId.read(signed);
    return id === null ? null : all.messages.byId(id);
  }

  /** Null when the mail holds no report, or one on no domain of ours. */
  function storeReport(
    all: Tables,
    domain: string | null,
    { network, signer }: Incoming,
    read: Read,
  ): 'stored' | 'known' | null {
    if ('unreadable' in read) return null;
    const context = { tables: all, hostname, now: clock.now(), network, signer: signer?.organization ?? '' };
    const { aggregate, tls } = read.parsed;
    const stored =
      aggregate !== null
        ? storeAggregate(context, aggregate, domain)
        : tls !== null
          ? storeTls(context, tls)
          : 'foreign';
    return stored === 'foreign' ? null : stored;
  }

  return {
    take: async (mail, read) => {
      const recipients = distinct(mail.recipients);
      const handled = await writer.run((all) => {
        const boxes = new Set<Box>();
        return recipients.map((recipient) => ({ recipient, ...handle(all, recipient, mail, read, boxes) }));
      });
      const { remoteAddress } = mail;
      for (const { recipient, result, message } of handled) {
        const fields = { purpose: recipient.purpose.kind, kind: kindOf(read), result, remoteAddress };
        log.info({ ...fields, message: message?.message_id }, 'mail came in');
        settings.observe(fields.purpose, result);
      }
    },
  };
}

/**
 * Each purpose once, however its address is spelled. Those that a token names come first: what they prove must not be
 * anticipated by a copy of the mail that proves less.
 */
function distinct(recipients: readonly Recipient[]): Recipient[] {
  const byPurpose = new Map<string, Recipient>();
  for (const recipient of recipients) {
    const key = JSON.stringify(recipient.purpose);
    if (!byPurpose.has(key)) byPurpose.set(key, recipient);
  }
  const isToken = ({ purpose }: Recipient) => 'messageId' in purpose;
  const all = [...byPurpose.values()];
  return [...all.filter(isToken), ...all.filter((recipient) => !isToken(recipient))];
}

/** The host that took the message, null when it is not known. */
function deliveredTo(all: Tables, message: MessageRow): string | null {
  const delivered = all.events.ofMessage(message.seq).findLast(({ kind }) => kind === 'email_delivered');
  if (delivered === undefined) return null;
  const { remoteHost }: { remoteHost?: unknown } = JSON.parse(delivered.data);
  return typeof remoteHost === 'string' ? remoteHost : null;
}

function kindOf(read: Read): string {
  return 'unreadable' in read ? `unread: ${read.unreadable}` : read.parsed.kind;
}

interface Handled {
  /** What became of it, for the log. */
  result: 'recorded' | 'known' | 'kept' | 'opted-out' | 'no-such-message' | 'forgotten' | 'stored';
  message: MessageRow | null;
}

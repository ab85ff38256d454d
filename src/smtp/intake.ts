import type { Clock } from '../core/clock.ts';
import type { Log } from '../core/log.ts';
import { applyReport, isErased } from '../events/incoming.ts';
import type { Recorder } from '../events/record.ts';
import type { Tokens } from '../mail/tokens.ts';
import type { Box } from '../store/kept-mail.ts';
import type { ListedMessage, MessageRow } from '../store/messages.ts';
import type { Tables } from '../store/tables.ts';
import type { Writer } from '../store/writer.ts';
import type { Unreadable } from './parse-pool.ts';
import type { ReadIncoming } from './parse-worker.ts';
import type { Purpose } from './rcpt-policy.ts';
import { storeAggregate, storeTls } from './reports.ts';

/**
 * What a mail that was read does here, all of it in one unit of work: a report changes the message that it
 * proves to be about, reports on domains are stored, what a person should see is kept. The proof is the
 * address it came to, else the id that we signed into the message it returns; nothing unsigned ever counts.
 */
export interface Incoming {
  raw: Buffer;
  /** Of the envelope, '' for none. */
  sender: string;
  recipients: readonly Recipient[];
  remoteAddress: string;
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
  writer: Writer;
  recorder: Recorder;
  tokens: Pick<Tokens, 'signedId'>;
  /** Counts what came in, by what it came for and what became of it. */
  observe(purpose: string, result: string): void;
  /** In a unit of work: the recipient of this message wants no more of its kind. */
  optOut(tables: Tables, message: MessageRow): void;
}

export function createIntake(settings: IntakeSettings): Intake {
  const { clock, log, writer, recorder, tokens } = settings;
  const hostname = settings.hostname.toLowerCase().replace(/\.$/, '');

  function handle(all: Tables, { purpose, address }: Recipient, mail: Incoming, read: Read): Handled {
    const keep = (box: Box, message: MessageRow | null): Handled => {
      if (message !== null && isErased(message)) return { result: 'forgotten', message };
      all.keptMail.insert({
        box,
        kind: kindOf(read),
        recipient: address,
        sender: mail.sender,
        remote_address: mail.remoteAddress,
        message_seq: message?.seq ?? null,
        received_at: clock.now(),
        raw: mail.raw,
      });
      return { result: 'kept', message };
    };
    if ('messageId' in purpose) return forMessage(all, purpose.kind, purpose.messageId, read, keep);
    if ('domain' in purpose) {
      const stored = storeReport(all, purpose.domain, read);
      return stored === null ? keep(purpose.kind, null) : { result: stored, message: null };
    }
    const message = provenMessage(all, read);
    const applied = message === null ? null : apply(all, message, read);
    if (purpose.kind === 'loop') return applied ?? keep('feedback', message);
    // The operator's own mail: shown, whatever else it did.
    const kept = keep(purpose.kind, message);
    return applied ?? kept;
  }

  /** It came to an address that we signed for this message. */
  function forMessage(
    all: Tables,
    kind: 'bounce' | 'feedback' | 'unsubscribe',
    messageId: string,
    read: Read,
    keep: (box: Box, message: MessageRow) => Handled,
  ): Handled {
    const message = all.messages.byId(messageId);
    if (message === null) return { result: 'no-such-message', message };
    if (kind !== 'unsubscribe') return apply(all, message, read) ?? keep(kind, message);
    // Nobody unsubscribes by a bounce or by being away: what no person wanted is kept, and changes nothing.
    if (['dsn', 'auto-reply'].includes(kindOf(read))) return keep(kind, message);
    settings.optOut(all, message);
    return { result: 'opted-out', message };
  }

  /** Null when there is nothing in it that changes a message. */
  function apply(all: Tables, message: ListedMessage, read: Read): Handled | null {
    if ('unreadable' in read) return null;
    const { parsed, fingerprint } = read;
    const report = { ...parsed, fingerprint: Buffer.from(fingerprint) };
    const result = applyReport(recorder, all, message, report, clock.now());
    return result === 'none' ? null : { result, message };
  }

  /** The message that the returned part names, when we signed that. */
  function provenMessage(all: Tables, read: Read): ListedMessage | null {
    const signed = 'unreadable' in read ? null : read.parsed.postriderId;
    const id = signed === null ? null : tokens.signedId.read(signed);
    return id === null ? null : all.messages.byId(id);
  }

  /** Null when there is none in it, or it is on no domain of ours. */
  function storeReport(all: Tables, domain: string | null, read: Read): 'stored' | 'known' | null {
    if ('unreadable' in read) return null;
    const house = { tables: all, hostname, now: clock.now() };
    const { aggregate, tls } = read.parsed;
    const stored =
      aggregate !== null
        ? storeAggregate(house, aggregate, domain)
        : tls !== null
          ? storeTls(house, tls)
          : 'foreign';
    return stored === 'foreign' ? null : stored;
  }

  return {
    take: async (mail, read) => {
      const handled = await writer.run((all) =>
        mail.recipients.map((recipient) => ({ recipient, ...handle(all, recipient, mail, read) })),
      );
      const { remoteAddress } = mail;
      for (const { recipient, result, message } of handled) {
        const fields = { purpose: recipient.purpose.kind, kind: kindOf(read), result, remoteAddress };
        log.info({ ...fields, message: message?.message_id }, 'mail came in');
        settings.observe(fields.purpose, result);
      }
    },
  };
}

function kindOf(read: Read): string {
  return 'unreadable' in read ? `unread: ${read.unreadable}` : read.parsed.kind;
}

interface Handled {
  /** What became of it, for the log. */
  result: 'recorded' | 'known' | 'kept' | 'opted-out' | 'no-such-message' | 'forgotten' | 'stored';
  message: MessageRow | null;
}

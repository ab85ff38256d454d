import { MINUTE } from '../core/clock.ts';
import type { Refusal } from '../core/refusal.ts';
import { createTokenBuckets, type Rate } from '../core/token-bucket.ts';
import { maySend } from '../domains/verification/status.ts';
import { hopsOf } from '../mail/incoming/inbound-header.ts';
import type { Context } from '../store/context.ts';
import { INBOUND_PART_BYTES } from '../store/inbound/inbound-mails.ts';
import type { MatchedRoute } from '../store/inbound/inbound-routes.ts';
import { type Authentication, isForged } from './authentication.ts';

/*
 * Reception of inbound mail, between RCPT and the 250: which route an address has, limits, and the commit of source and mails.
 * Everything else happens afterwards (worker.ts).
 */

/** Where the mail of a recipient goes. */
export type InboundRecipient = Pick<MatchedRoute, 'route_id' | 'account_id' | 'spam_policy'> & {
  address: string;
};

/** Why mail is not accepted now: the sender tries again. */
export type InboundObstacle =
  | 'not-verified'
  | 'disabled'
  | 'storage'
  | 'backlog'
  | 'too-much-from-sender'
  | 'too-much-for-account';

export interface InboundMail {
  raw: Buffer;
  /** MAIL FROM, '' for the null sender. */
  sender: string;
  helo: string;
  remoteAddress: string;
  /** Of the client. */
  network: string;
  recipients: readonly InboundRecipient[];
}

/** The mail of an account: long bursts, and 10 a second. */
const ACCOUNT_RATE: Rate = { burst: 2000, perSecond: 10 };
/** That of a network, which may be a large provider. */
const NETWORK_RATE: Rate = { burst: 500, perSecond: 2 };
/** That of an envelope sender: a loop with an automatic reply ends here. */
const SENDER_RATE: Rate = { burst: 60, perSecond: 20 / (MINUTE / 1000) };
/** Mails of an account that wait for the parser. */
const MAX_UNPARSED = 5000;
/** RFC 5321 §6.3. */
const MAX_HOPS = 100;
const MAX_ACCOUNTS = 10_000;
const MAX_SENDERS = 40_000;
/** Characters of a sender that distinguish it: RFC 5321 §4.5.3.1.3 allows 256, and a command is longer. */
const MAX_SENDER = 256;
/** What Postrider writes before the @, other characters in each message: its mail counts as that of one sender at the host. */
const RETURN_PATH = /^b-[a-z2-7]{48}(?=@)/;

export interface ReceptionDeps {
  /** Refuses an account that stores as many bytes as it may; null: it stores fewer. */
  storedRefusal(accountId: string): Refusal | null;
  /** Called after the commit. */
  onReceived(): void;
  /** Checks the sender of a mail with a route that rejects forged mail. */
  authenticate(mail: InboundMail): Promise<Authentication>;
}

/** Counts are in memory: 40,000 senders and 10,000 accounts. Starts nothing. */
export function createReception(
  {
    tables,
    writer,
    clock,
    monotonic,
    ids,
  }: Pick<Context, 'tables' | 'writer' | 'clock' | 'monotonic' | 'ids'>,
  { storedRefusal, onReceived, authenticate }: ReceptionDeps,
) {
  const accounts = createTokenBuckets(monotonic, ACCOUNT_RATE, MAX_ACCOUNTS);
  const networks = createTokenBuckets(monotonic, NETWORK_RATE, MAX_SENDERS);
  const senders = createTokenBuckets(monotonic, SENDER_RATE, MAX_SENDERS);
  /** Sources that this process is writing. */
  const storing = new Set<number>();

  /** The buckets of a mail of this sender for the account. Mail without an envelope sender is limited by its network only. */
  function bucketsOf(accountId: string, { sender, network }: Pick<InboundMail, 'sender' | 'network'>) {
    return {
      sender: [
        networks.of(JSON.stringify([accountId, network])),
        ...(sender === '' ? [] : [senders.of(JSON.stringify([accountId, senderKey(sender)]))]),
      ],
      account: accounts.of(accountId),
    };
  }

  /** Stores the bytes for an account; `onBegun` gets the number of the source, before the parts are written. */
  async function write(accountId: string, raw: Buffer, onBegun: (seq: number) => void): Promise<void> {
    const sourceSeq = await writer.run((tx) => {
      const seq = tx.inbound.insertSource(accountId, raw.length);
      storing.add(seq);
      onBegun(seq);
      return seq;
    }, accountId);
    for (let n = 0; n * INBOUND_PART_BYTES < raw.length || n === 0; n++) {
      const part = raw.subarray(n * INBOUND_PART_BYTES, (n + 1) * INBOUND_PART_BYTES);
      await writer.run((tx) => tx.inbound.insertPart(sourceSeq, n, part), accountId);
    }
  }

  return {
    /** The route of an address; null: it has none. `host` in A-labels and lower case. */
    routeOf: (local: string, host: string): MatchedRoute | null =>
      tables.inboundRoutes.match({ local: local.toLowerCase(), host }),
    /** Whether any account receives mail at the host. */
    isInboundHost: (host: string): boolean => tables.inboundRoutes.hasHost(host) !== null,
    /** Why mail of this sender is not accepted for the route now; null: it is. Counts nothing. */
    obstacle: (
      route: MatchedRoute,
      from: Pick<InboundMail, 'sender' | 'network'>,
    ): InboundObstacle | null => {
      if (route.account_status !== 'active') return 'disabled';
      if (!maySend(route.domain_status)) return 'not-verified';
      if (storedRefusal(route.account_id) !== null) return 'storage';
      if (tables.inbound.countUnparsed(route.account_id, MAX_UNPARSED) >= MAX_UNPARSED) return 'backlog';
      const { sender, account } = bucketsOf(route.account_id, from);
      if (sender.some((bucket) => bucket.waitMs(1) > 0)) return 'too-much-from-sender';
      return account.waitMs(1) > 0 ? 'too-much-for-account' : null;
    },
    /**
     * Receives a mail whose recipients were accepted. Resolves when it is durable; `forged`: nothing was stored, because a route
     * rejects mail that fails the DMARC policy `reject` of its author's domain; `unknown`: that could not be checked; `loop`: it has
     * passed too many servers.
     */
    receive: async (mail: InboundMail): Promise<'received' | 'forged' | 'unknown' | 'loop'> => {
      if (hopsOf(mail.raw) > MAX_HOPS) return 'loop';
      const accountIds = [...new Set(mail.recipients.map(({ account_id }) => account_id))];
      for (const accountId of accountIds) {
        const { sender, account } = bucketsOf(accountId, mail);
        for (const bucket of [...sender, account]) bucket.charge(1);
      }
      const isChecked = mail.recipients.some(({ spam_policy }) => spam_policy === 'reject');
      const authentication = isChecked ? await authenticate(mail) : null;
      if (authentication !== null && isForged(authentication)) return 'forged';
      if (authentication?.dmarc === 'temperror') return 'unknown';
      const sources = new Map<string, number>();
      try {
        for (const accountId of accountIds)
          await write(accountId, mail.raw, (seq) => sources.set(accountId, seq));
        await writer.run((tx) => {
          for (const seq of sources.values()) tx.inbound.setState(seq, 'stored');
          for (const recipient of distinct(mail.recipients))
            tx.inbound.insert({
              inbound_id: ids.make('inb'),
              account_id: recipient.account_id,
              route_id: recipient.route_id,
              source_seq: sources.get(recipient.account_id) ?? 0,
              status: 'received',
              sender: mail.sender.toLowerCase(),
              recipient: recipient.address,
              helo: mail.helo,
              remote_address: mail.remoteAddress,
              received_at: clock.now(),
              from_address: '',
              subject: '',
              answers: null,
              automatic: null,
              is_loop: 0,
              attachments: 0,
              parse_error: null,
              authentication: authentication === null ? null : JSON.stringify(authentication),
              content: null,
            });
        }, 'inbound mail');
      } finally {
        for (const seq of sources.values()) storing.delete(seq);
      }
      onReceived();
      return 'received';
    },
    /** Whether this process is writing a source. */
    isStoring: (sourceSeq: number): boolean => storing.has(sourceSeq),
  };
}

export type Reception = ReturnType<typeof createReception>;

function senderKey(sender: string): string {
  return sender.toLowerCase().slice(0, MAX_SENDER).replace(RETURN_PATH, '');
}

/** Each route once: two of its addresses are one mail, which names the first. */
function distinct(recipients: readonly InboundRecipient[]): InboundRecipient[] {
  const byRoute = new Map<string, InboundRecipient>();
  for (const recipient of recipients)
    if (!byRoute.has(recipient.route_id)) byRoute.set(recipient.route_id, recipient);
  return [...byRoute.values()];
}

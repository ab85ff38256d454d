import type { ApiClient, MessageSummary } from '../support/api-client.ts';

/**
 * Both ends' account of every message: what the API accepted, and what the destinations took. Every message has
 * a recipient of its own, so that the recipient names it on both sides.
 */
export interface Ledger {
  readonly accepted: ReadonlyMap<string, Accepted>;
  /** A send was answered with 200. */
  accept(recipient: string, messageId: string): void;
  /** A destination took a message: it answered the final dot with 250. */
  take(recipient: string, envelopeSender: string): void;
  /** The envelope sender that it came with: where its bounce goes to. */
  senderOf(recipient: string): string | undefined;
  /** When a destination took it, epoch ms; empty: not yet. */
  taken(recipient: string): readonly number[];
  /** Different messages that destinations took. */
  distinct(): number;
  duplicates(): number;
  /** Messages that were accepted so long ago and are not at the destination. */
  waiting(forMs: number, of?: (recipient: string) => boolean): number;
  /** The judgement when the API gives no account: all that no destination took is stuck. */
  unlisted(): Judgement;
  judge(apis: readonly ApiClient[], mayFail: (recipient: string) => boolean): Promise<Judgement>;
}

export interface Accepted {
  messageId: string;
  at: number;
}

export interface Judgement {
  /** Accepted when the books were closed. */
  accepted: number;
  delivered: number;
  returned: number;
  lost: string[];
  stuck: string[];
  faults: string[];
}

const DELIVERED = new Set(['delivered', 'complained']);
const RETURNED = new Set(['bounced', 'failed']);

export function createLedger(): Ledger {
  const accepted = new Map<string, Accepted>();
  const receipts = new Map<string, number[]>();
  const senders = new Map<string, string>();
  const taken = (recipient: string) => receipts.get(recipient) ?? [];

  return {
    accepted,
    accept: (recipient, messageId) => {
      const known = accepted.get(recipient);
      if (known !== undefined && known.messageId !== messageId)
        throw new Error(`one Idempotency-Key made two messages: ${known.messageId} and ${messageId}`);
      accepted.set(recipient, { messageId, at: Date.now() });
    },
    take: (recipient, envelopeSender) => {
      receipts.set(recipient, [...taken(recipient), Date.now()]);
      senders.set(recipient, envelopeSender);
    },
    senderOf: (recipient) => senders.get(recipient),
    taken,
    distinct: () => receipts.size,
    duplicates: () => [...receipts.values()].reduce((sum, times) => sum + times.length - 1, 0),
    waiting: (forMs, of = () => true) =>
      [...accepted].filter(
        ([recipient, { at }]) => of(recipient) && at < Date.now() - forMs && taken(recipient).length === 0,
      ).length,
    unlisted: () => {
      const open = [...accepted.keys()].filter((recipient) => taken(recipient).length === 0);
      const delivered = accepted.size - open.length;
      return { accepted: accepted.size, delivered, returned: 0, lost: [], stuck: open, faults: [] };
    },
    judge: async (apis, mayFail) => {
      // What is accepted while the pages are read would be missing on them.
      const before = [...accepted];
      const listed = new Map<string, MessageSummary>();
      for (const api of apis) {
        for (const message of await api.allMessages()) listed.set(message.messageId, message);
      }
      const judgement: Judgement = {
        accepted: before.length,
        delivered: 0,
        returned: 0,
        lost: [],
        stuck: [],
        faults: [],
      };
      for (const [recipient, { messageId }] of before) {
        const message = listed.get(messageId);
        const state = message?.status ?? 'unknown to the API';
        const wasTaken = taken(recipient).length > 0;
        const due = message?.nextAttemptAt === undefined ? '' : ` until ${message.nextAttemptAt}`;
        const line = `${messageId} to ${recipient} is ${state}${due}, ${wasTaken ? '' : 'not '}at the destination`;
        // A message that was taken may bounce later, by a DSN.
        if (wasTaken && (DELIVERED.has(state) || state === 'bounced')) judgement.delivered++;
        else if (!wasTaken && RETURNED.has(state) && mayFail(recipient)) judgement.returned++;
        else if (wasTaken && RETURNED.has(state)) judgement.faults.push(line);
        else if (DELIVERED.has(state) || RETURNED.has(state) || message === undefined)
          judgement.lost.push(line);
        else judgement.stuck.push(line);
      }
      return judgement;
    },
  };
}

import type { ApiClient, MessageSummary } from '../support/api-client.ts';

/**
 * The messages that the API accepted and those that the destinations accepted. Each message has a different recipient,
 * which identifies it on both sides.
 */
export interface Ledger {
  readonly accepted: ReadonlyMap<string, Accepted>;
  /** Adds a send that was answered with 200. */
  accept(recipient: string, messageId: string): void;
  /** Adds a message that a destination accepted: the reply to its final dot was 250. */
  receive(recipient: string, envelopeSender: string): void;
  /** The envelope sender of the received message, to which a bounce is sent. */
  senderOf(recipient: string): string | undefined;
  /** When destinations received it, epoch ms; empty: not yet. */
  received(recipient: string): readonly number[];
  /** Number of different messages that destinations received. */
  distinct(): number;
  duplicates(): number;
  /** Messages that were accepted more than `forMs` ago and were not received. */
  waiting(forMs: number, of?: (recipient: string) => boolean): number;
  /** The comparison when the API cannot list messages: all that no destination received are stuck. */
  unlisted(): Comparison;
  compare(apis: readonly ApiClient[], mayFail: (recipient: string) => boolean): Promise<Comparison>;
}

export interface Accepted {
  messageId: string;
  at: number;
}

export interface Comparison {
  /** Accepted when the comparison began. */
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
  const received = (recipient: string) => receipts.get(recipient) ?? [];

  return {
    accepted,
    accept: (recipient, messageId) => {
      const known = accepted.get(recipient);
      if (known !== undefined && known.messageId !== messageId)
        throw new Error(`one Idempotency-Key created two messages: ${known.messageId} and ${messageId}`);
      accepted.set(recipient, { messageId, at: Date.now() });
    },
    receive: (recipient, envelopeSender) => {
      receipts.set(recipient, [...received(recipient), Date.now()]);
      senders.set(recipient, envelopeSender);
    },
    senderOf: (recipient) => senders.get(recipient),
    received,
    distinct: () => receipts.size,
    duplicates: () => [...receipts.values()].reduce((sum, times) => sum + times.length - 1, 0),
    waiting: (forMs, of = () => true) =>
      [...accepted].filter(
        ([recipient, { at }]) => of(recipient) && at < Date.now() - forMs && received(recipient).length === 0,
      ).length,
    unlisted: () => {
      const open = [...accepted.keys()].filter((recipient) => received(recipient).length === 0);
      const delivered = accepted.size - open.length;
      return { accepted: accepted.size, delivered, returned: 0, lost: [], stuck: open, faults: [] };
    },
    compare: async (apis, mayFail) => {
      // Messages that are accepted while the pages are read would be missing.
      const before = [...accepted];
      const listed = new Map<string, MessageSummary>();
      for (const api of apis) {
        for (const message of await api.allMessages()) listed.set(message.messageId, message);
      }
      const comparison: Comparison = {
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
        const wasReceived = received(recipient).length > 0;
        const due = message?.nextAttemptAt === undefined ? '' : ` until ${message.nextAttemptAt}`;
        const line = `${messageId} to ${recipient} is ${state}${due}, ${wasReceived ? '' : 'not '}at the destination`;
        // A message that the destination accepted may bounce later, by a DSN.
        if (wasReceived && (DELIVERED.has(state) || state === 'bounced')) comparison.delivered++;
        else if (!wasReceived && RETURNED.has(state) && mayFail(recipient)) comparison.returned++;
        else if (wasReceived && RETURNED.has(state)) comparison.faults.push(line);
        else if (DELIVERED.has(state) || RETURNED.has(state) || message === undefined)
          comparison.lost.push(line);
        else comparison.stuck.push(line);
      }
      return comparison;
    },
  };
}

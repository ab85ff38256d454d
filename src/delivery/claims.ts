import { type Clock, SECOND } from '../core/clock.ts';
import type { QueuedMessage, Stream } from '../store/messages/queue.ts';

/**
 * Messages that this process is busy with and that the database still shows as waiting: read ahead for a site,
 * or about to be leased. Reading the queue passes over them. A claim is given up by whoever took it; one on a
 * message that failed lapses by itself after a while, later each time.
 */
export interface Claims {
  has(seq: number): boolean;
  add(message: ClaimedMessage): void;
  /** The database knows the message's new state, or it waits as before. */
  release(message: ClaimedMessage): void;
  /** Passes over the message for a while, because it failed. */
  holdOff(message: ClaimedMessage): void;
  /** Claims on a stream's messages: so many more have to be read to find others. */
  inStream(key: string): number;
  /** Ends what has lapsed. */
  sweep(): void;
  count(): number;
}

export type ClaimedMessage = Pick<QueuedMessage, 'seq' | 'lane' | 'account_id' | 'destination'>;

const FIRST_WAIT = SECOND;
const LONGEST_WAIT = 600 * SECOND;
/** Messages that are passed over at most; the oldest is looked at again before its time. */
const HELD_OFF = 10_000;
/** A message that did not fail again for this long starts anew. */
const FORGET_AFTER = 2 * LONGEST_WAIT;

export function createClaims(monotonic: Clock): Claims {
  const claimed = new Set<number>();
  const streams = new Map<string, number>();
  const heldOff = new Map<number, { key: string; until: number; wait: number; lapsed: boolean }>();

  function count(key: string, by: 1 | -1): void {
    const sum = (streams.get(key) ?? 0) + by;
    if (sum > 0) streams.set(key, sum);
    else streams.delete(key);
  }

  function claim(seq: number, key: string): void {
    if (claimed.has(seq)) return;
    claimed.add(seq);
    count(key, 1);
  }

  function drop(seq: number, key: string): void {
    if (claimed.delete(seq)) count(key, -1);
  }

  return {
    has: (seq) => claimed.has(seq),
    add: (message) => claim(message.seq, keyOf(message)),
    release: (message) => {
      heldOff.delete(message.seq);
      drop(message.seq, keyOf(message));
    },
    holdOff: (message) => {
      const { seq } = message;
      const key = keyOf(message);
      const wait = Math.min((heldOff.get(seq)?.wait ?? FIRST_WAIT / 2) * 2, LONGEST_WAIT);
      heldOff.delete(seq);
      heldOff.set(seq, { key, until: monotonic.now() + wait, wait, lapsed: false });
      claim(seq, key);
      for (const [oldest, entry] of heldOff) {
        if (heldOff.size <= HELD_OFF) break;
        heldOff.delete(oldest);
        drop(oldest, entry.key);
      }
    },
    inStream: (key) => streams.get(key) ?? 0,
    sweep: () => {
      const now = monotonic.now();
      for (const [seq, entry] of heldOff) {
        if (!entry.lapsed && entry.until <= now) {
          // Remembered, so that the next failure waits longer.
          entry.lapsed = true;
          drop(seq, entry.key);
        }
        if (entry.lapsed && entry.until + FORGET_AFTER <= now) heldOff.delete(seq);
      }
    },
    count: () => claimed.size,
  };
}

const keyOf = (message: ClaimedMessage) => streamKey(message.lane, message);

/** Names one account's mail to one destination in one lane. */
export function streamKey(lane: 0 | 1, stream: Stream): string {
  return `${lane} ${stream.account_id} ${stream.destination}`;
}

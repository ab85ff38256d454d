import { type Clock, SECOND } from '../../core/clock.ts';
import { type QueueKey, queueKeyText } from '../../store/messages/queue.ts';

/**
 * Messages that this process works on and that the database still shows as waiting: read ahead for a site, or about
 * to be leased. Reading the queue skips them. The module that adds a claim releases it; a claim on a message that failed
 * expires after a while, later each time.
 */
export interface Claims {
  has(seq: number): boolean;
  add(message: ClaimedMessage): void;
  /** Ends the claim: the database has the message's new state, or the message waits as before. */
  release(message: ClaimedMessage): void;
  /** Skips the message for a while, because updating or reading it failed. */
  holdOff(message: ClaimedMessage): void;
  /** Number of claims on messages of a key: a read must return that many more to find others. */
  countOf(key: QueueKey): number;
  /** Whether messages of a key are worked on; those that are skipped for a while do not count. */
  isInProgress(keyText: string): boolean;
  /** Ends the claims that have expired. */
  sweep(): void;
  count(): number;
}

export type ClaimedMessage = QueueKey & { seq: number };

const FIRST_WAIT_MS = SECOND;
const MAX_WAIT_MS = 600 * SECOND;
/** Failed messages that are skipped; if there are more, the oldest is read again early. */
const MAX_HELD_OFF = 10_000;
/** A message that has not failed again for this long starts with the first wait. */
const FORGET_AFTER_MS = 2 * MAX_WAIT_MS;

/** `clock`: monotonic. */
export function createClaims(clock: Clock): Claims {
  const claimed = new Set<number>();
  const counts = new Map<string, number>();
  /** Those claims of `counts` whose messages are skipped for a while. */
  const skipped = new Map<string, number>();
  const heldOff = new Map<number, { key: string; until: number; waitMs: number; expired: boolean }>();

  function count(sums: Map<string, number>, key: string, by: 1 | -1): void {
    const sum = (sums.get(key) ?? 0) + by;
    if (sum > 0) sums.set(key, sum);
    else sums.delete(key);
  }

  function claim(seq: number, key: string): void {
    if (claimed.has(seq)) return;
    claimed.add(seq);
    count(counts, key, 1);
  }

  function drop(seq: number, key: string): void {
    if (claimed.delete(seq)) count(counts, key, -1);
  }

  /** The message is not skipped any more. */
  function endHoldOff(seq: number): void {
    const entry = heldOff.get(seq);
    heldOff.delete(seq);
    if (entry?.expired === false) count(skipped, entry.key, -1);
  }

  return {
    has: (seq) => claimed.has(seq),
    add: (message) => claim(message.seq, queueKeyText(message)),
    release: (message) => {
      endHoldOff(message.seq);
      drop(message.seq, queueKeyText(message));
    },
    holdOff: (message) => {
      const { seq } = message;
      const key = queueKeyText(message);
      const waitMs = Math.min((heldOff.get(seq)?.waitMs ?? FIRST_WAIT_MS / 2) * 2, MAX_WAIT_MS);
      endHoldOff(seq);
      count(skipped, key, 1);
      heldOff.set(seq, { key, until: clock.now() + waitMs, waitMs, expired: false });
      claim(seq, key);
      for (const [oldest, entry] of heldOff) {
        if (heldOff.size <= MAX_HELD_OFF) break;
        endHoldOff(oldest);
        // After the wait, a claim on the message belongs to the module that has read it again.
        if (!entry.expired) drop(oldest, entry.key);
      }
    },
    countOf: (key) => counts.get(queueKeyText(key)) ?? 0,
    isInProgress: (keyText) => (counts.get(keyText) ?? 0) > (skipped.get(keyText) ?? 0),
    sweep: () => {
      const now = clock.now();
      for (const [seq, entry] of heldOff) {
        if (!entry.expired && entry.until <= now) {
          // The entry stays, so that the next failure waits longer.
          entry.expired = true;
          count(skipped, entry.key, -1);
          drop(seq, entry.key);
        }
        if (entry.expired && entry.until + FORGET_AFTER_MS <= now) heldOff.delete(seq);
      }
    },
    count: () => claimed.size,
  };
}

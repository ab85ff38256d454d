import { type QueueKey, queueKeyText } from '../../store/messages/queue.ts';
import type { Waits } from '../waits.ts';

export type Claims = ReturnType<typeof createClaims>;

export type ClaimedMessage = QueueKey & { seq: number };

/**
 * Messages that this process works on and that the database still shows as waiting: read ahead for a site, or about
 * to be leased. Reading the queue skips them, and those that failed, for a while, later each time. The module that adds a
 * claim releases it.
 */
export function createClaims(waits: Pick<Waits, 'begin' | 'end' | 'msOf' | 'failedMessages'>) {
  const claimed = new Set<number>();
  const counts = new Map<string, number>();

  function drop({ seq }: ClaimedMessage, key: string): void {
    if (!claimed.delete(seq)) return;
    const left = (counts.get(key) ?? 0) - 1;
    if (left > 0) counts.set(key, left);
    else counts.delete(key);
  }

  return {
    has: (seq: number): boolean => claimed.has(seq) || waits.msOf('message_failed', seq) > 0,
    add: (message: ClaimedMessage): void => {
      if (claimed.has(message.seq)) return;
      claimed.add(message.seq);
      const key = queueKeyText(message);
      counts.set(key, (counts.get(key) ?? 0) + 1);
    },
    /** Ends the claim: the database has the message's new state, or the message waits as before. */
    release: (message: ClaimedMessage): void => {
      waits.end('message_failed', message.seq);
      drop(message, queueKeyText(message));
    },
    /** Skips the message for a while, because updating or reading it failed. */
    holdOff: (message: ClaimedMessage): void => {
      const queueKey = queueKeyText(message);
      waits.begin('message_failed', message.seq, { queueKey });
      drop(message, queueKey);
    },
    /** Number of messages of a key that a read skips: it must return that many more to find others. */
    countOf: (key: QueueKey): number => {
      const text = queueKeyText(key);
      return (counts.get(text) ?? 0) + waits.failedMessages(text);
    },
    /** Whether messages of a key are worked on; those that are skipped for a while do not count. */
    isInProgress: (keyText: string): boolean => counts.has(keyText),
    count: (): number => claimed.size,
  };
}

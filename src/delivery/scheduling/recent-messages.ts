import { type Clock, SECOND } from '../../core/clock.ts';
import type { JobContent } from '../../mail/stored-content.ts';
import type { ReadyMessage } from '../../store/messages/queue.ts';

/**
 * Messages that were stored a short time ago and wait in the queue, so that they need not be read from it when their turn
 * comes. Like messages that were read ahead, they are validated by the transaction that leases them.
 */
export interface RecentMessages {
  /** Adds a message whose transaction is on disk. */
  add(message: ReadyMessage, content: JobContent | undefined): void;
  /** The message, with its content if it is small; undefined: it must be read. */
  get(seq: number): RecentMessage | undefined;
  remove(seq: number): void;
  /** Forgets those that are too old. */
  sweep(): void;
  clear(): void;
}

export interface RecentMessage {
  message: ReadyMessage;
  content: JobContent | undefined;
  /** Monotonic. */
  addedAt: number;
}

/** About 2 KB each. */
const MAX_MESSAGES = 4000;
/** Like messages that were read ahead. */
const MAX_AGE_MS = 10 * SECOND;

/** Empty at first; forgets the oldest message for the next one. `clock`: monotonic. */
export function createRecentMessages(clock: Clock): RecentMessages {
  /** The oldest first. */
  const messages = new Map<number, RecentMessage>();
  const isTooOld = ({ addedAt }: RecentMessage) => clock.now() - addedAt > MAX_AGE_MS;

  return {
    add: (message, content) => {
      messages.set(message.seq, { message, content, addedAt: clock.now() });
      if (messages.size <= MAX_MESSAGES) return;
      for (const seq of messages.keys()) {
        messages.delete(seq);
        break;
      }
    },
    get: (seq) => {
      const found = messages.get(seq);
      return found !== undefined && !isTooOld(found) ? found : undefined;
    },
    remove: (seq) => void messages.delete(seq),
    sweep: () => {
      for (const [seq, message] of messages) {
        if (!isTooOld(message)) return;
        messages.delete(seq);
      }
    },
    clear: () => messages.clear(),
  };
}

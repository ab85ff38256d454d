import type { Clock } from '../core/clock.ts';
import { isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import type { Recorder } from '../events/record.ts';
import type { ListedMessage } from '../store/messages.ts';
import type { QueueRow, Stream } from '../store/queue.ts';
import type { Tables } from '../store/tables.ts';
import type { Writer } from '../store/writer.ts';

/**
 * The hand on mail that waits: it may be called off as long as nobody is sending it, and sent sooner when it
 * waits for another try. What a worker holds is leaving already; what is final stays final.
 */
export interface QueuedMail {
  /** `accountId` null: the operator, who may touch any account's mail. */
  cancel(accountId: string | null, messageId: string): Promise<ListedMessage | Refusal>;
  /** Makes a deferred message due now. */
  retry(accountId: string | null, messageId: string): Promise<ListedMessage | Refusal>;
}

export interface QueuedMailHouse {
  tables: Tables;
  writer: Writer;
  clock: Clock;
  recorder: Recorder;
  /** Tells delivery of mail that is due (committed); without it, delivery finds it within a second or so. */
  announce?: (lane: 0 | 1, stream: Stream) => void;
}

export function createQueuedMail(house: QueuedMailHouse): QueuedMail {
  const { tables, writer, clock, recorder, announce } = house;
  return {
    cancel: (accountId, messageId) =>
      writer.run((all): ListedMessage | Refusal => {
        const waiting = findWaiting(all, accountId, messageId);
        if (isRefusal(waiting)) return waiting;
        const { message } = waiting;
        if (!recorder.message(all, message, 'email_failed', { fields: { reason: 'cancelled' } }))
          return wrongState(message, 'cancelled');
        return findMessage(all, accountId, messageId);
      }),
    retry: async (accountId, messageId) => {
      const retried = await writer.run((all): QueueRow | Refusal => {
        const waiting = findWaiting(all, accountId, messageId);
        if (isRefusal(waiting)) return waiting;
        const { message, queued } = waiting;
        if (message.status !== 'deferred') return wrongState(message, 'retried');
        all.queue.release(message.seq, clock.now());
        return queued;
      });
      if (isRefusal(retried)) return retried;
      announce?.(retried.lane, retried);
      return findMessage(tables, accountId, messageId);
    },
  };
}

interface Waiting {
  message: ListedMessage;
  queued: QueueRow;
}

/** A message that is in the queue and that nobody is sending. */
function findWaiting(tables: Tables, accountId: string | null, messageId: string): Waiting | Refusal {
  const message = findMessage(tables, accountId, messageId);
  if (isRefusal(message)) return message;
  const queued = tables.queue.get(message.seq);
  if (queued === null) {
    return refuse('INVALID_STATE', `the message is ${message.status}: nothing of it waits any more`);
  }
  return queued.lease === null
    ? { message, queued }
    : refuse('INVALID_STATE', 'the message is being sent at this moment');
}

/** The same refusal for an unknown message and for another account's. */
function findMessage(tables: Tables, accountId: string | null, messageId: string): ListedMessage | Refusal {
  const message = tables.messages.byId(messageId);
  return message === null || (accountId !== null && message.account_id !== accountId)
    ? refuse('MESSAGE_NOT_FOUND', 'There is no such message')
    : message;
}

function wrongState(message: ListedMessage, action: string): Refusal {
  return refuse('INVALID_STATE', `a message that is ${message.status} cannot be ${action}`);
}

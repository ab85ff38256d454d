import { type Clock, iso } from '../core/clock.ts';
import { isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import type { Recorder } from '../events/record.ts';
import type { ListedMessage } from '../store/messages/messages.ts';
import { HELD, type QueuedMessage, type QueueKey, type QueueRow } from '../store/messages/queue.ts';
import type { Tables } from '../store/tables.ts';
import type { Writer } from '../store/writer.ts';

/**
 * Cancels and retries mail that waits: it may be cancelled as long as it is not being sent, and retried when it
 * is deferred. What a worker holds is leaving already; what is final stays final.
 */
export interface QueuedMail {
  /** `accountId` null: the operator, who may touch any account's mail. */
  cancel(accountId: string | null, messageId: string): Promise<ListedMessage | Refusal>;
  /** Makes a deferred message due now, and reports what that leads to. */
  retry(accountId: string | null, messageId: string): Promise<Retried | Refusal>;
}

export interface Retried {
  message: ListedMessage;
  /** What happens to it now, in words. */
  report: string;
}

export interface QueuedMailHouse {
  tables: Tables;
  writer: Writer;
  clock: Clock;
  recorder: Recorder;
  /** Tells delivery of mail that is due (committed); without it, delivery finds it within a second or so. */
  announce?: (key: QueueKey) => void;
  /** Why delivery does not send a message although it is due, in words; null: nothing is known against it. */
  obstacle?: (message: QueuedMessage) => string | null;
}

export function createQueuedMail(house: QueuedMailHouse): QueuedMail {
  const { tables, writer, clock, recorder, announce, obstacle } = house;
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
        if (isHeld(all, message, queued)) return refuse('INVALID_STATE', HELD_BY_CAMPAIGN);
        if (message.status !== 'deferred') return notDeferred(message, queued);
        all.queue.release(message.seq, clock.now());
        return queued;
      });
      if (isRefusal(retried)) return retried;
      announce?.(retried);
      const message = findMessage(tables, accountId, messageId);
      if (isRefusal(message)) return message;
      const due = { ...message, ...retried, due_at: clock.now(), lease: null };
      return { message, report: reportOf(obstacle === undefined ? undefined : obstacle(due)) };
    },
  };
}

const HELD_BY_CAMPAIGN = 'the message stays held: its campaign is paused. Resume the campaign to send it';

/** It is held, or would be as soon as it is taken from the queue. */
function isHeld(tables: Tables, { job_id }: ListedMessage, queued: QueueRow): boolean {
  if (queued.due_at === HELD) return true;
  return (
    queued.campaign_seq !== null && job_id !== null && tables.campaignSends.statusOfJob(job_id) === 'paused'
  );
}

function notDeferred(message: ListedMessage, queued: QueueRow): Refusal {
  if (message.status !== 'queued') return wrongState(message, 'retried');
  return refuse(
    'INVALID_STATE',
    queued.ready === 1
      ? 'the message is in the queue and due already: it was not tried yet'
      : `the message was not tried yet, and is due at ${iso(queued.due_at)}`,
  );
}

/** `obstacle` undefined: delivery is another process, which cannot be asked. */
function reportOf(obstacle: string | null | undefined): string {
  if (obstacle === undefined)
    return 'is due now; the running daemon tries it within a second, or as soon as its destination can be reached';
  return obstacle === null ? 'is due now and is tried at once' : `is due now, but ${obstacle}`;
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

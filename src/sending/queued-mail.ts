import { iso } from '../core/clock.ts';
import { isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import { shownStatus } from '../events/message-view.ts';
import type { Recorder } from '../events/record.ts';
import type { Context } from '../store/context.ts';
import type { ListedMessage } from '../store/messages/messages.ts';
import {
  HELD,
  HELD_BY_RESTORE,
  type QueuedMessage,
  type QueueKey,
  type StoredInQueueRow,
} from '../store/messages/queue.ts';
import type { Tables } from '../store/tables.ts';
import { parseNewSchedule } from './request.ts';

export interface RetryResult {
  message: ListedMessage;
  /** The rest of a sentence: when delivery tries it, or why it does not. */
  report: string;
}

/**
 * Cancels queued messages that are not being sent, retries deferred ones, and changes the time of scheduled ones. Stateless:
 * each action is one unit of work, so that it cannot overlap with a lease. Without `announce` and `obstacle` (a command)
 * delivery runs in another process.
 */
export function createQueuedMail(
  { tables, writer, clock }: Pick<Context, 'tables' | 'writer' | 'clock'>,
  {
    recorder,
    announce,
    obstacle,
  }: {
    recorder: Recorder;
    /** Notifies delivery of mail that is due and committed; without it, delivery finds it within about a second. */
    announce?: (key: QueueKey) => void;
    /** Why delivery does not send a due message, a clause; null: no reason is known. */
    obstacle?: (message: QueuedMessage) => string | null;
  },
) {
  return {
    /** `accountId` null: by the operator, for messages of all accounts. */
    cancel: (accountId: string | null, messageId: string): Promise<ListedMessage | Refusal> =>
      writer.run((tx): ListedMessage | Refusal => {
        const waiting = findWaiting(tx, accountId, messageId);
        if (isRefusal(waiting)) return waiting;
        const { message } = waiting;
        if (!recorder.message(tx, message, { kind: 'email_failed', fields: { reason: 'cancelled' } }))
          return wrongState(message, 'cancelled');
        return findMessage(tx, accountId, messageId);
      }, accountId ?? undefined),
    /** Makes a deferred message due now. */
    retry: async (accountId: string | null, messageId: string): Promise<RetryResult | Refusal> => {
      const retried = await writer.run((tx): StoredInQueueRow | Refusal => {
        const waiting = findWaiting(tx, accountId, messageId);
        if (isRefusal(waiting)) return waiting;
        const { message, queued } = waiting;
        if (queued.due_at === HELD_BY_RESTORE) return refuse('INVALID_STATE', HELD_SINCE_RESTORE);
        if (isHeld(tx, message, queued)) return refuse('INVALID_STATE', HELD_BY_CAMPAIGN);
        const stop = tx.domains.sendingStop(message.domain_id);
        if (stop !== null) return refuse('INVALID_STATE', HELD_BECAUSE[stop]);
        if (message.status !== 'deferred') return notDeferred(message, queued);
        tx.queue.release(message.seq, clock.now());
        return queued;
      }, accountId ?? undefined);
      if (isRefusal(retried)) return retried;
      announce?.(retried);
      const message = findMessage(tables, accountId, messageId);
      if (isRefusal(message)) return message;
      const due = { ...message, ...retried, due_at: clock.now(), lease: null };
      return { message, report: reportOf(obstacle === undefined ? undefined : obstacle(due)) };
    },
    /** Changes when a scheduled message is sent. `scheduledAt`: ISO 8601, with the limits of a send. */
    reschedule: async (
      accountId: string,
      messageId: string,
      scheduledAt: string,
    ): Promise<ListedMessage | Refusal> => {
      const now = clock.now();
      const at = parseNewSchedule(scheduledAt, now);
      if (isRefusal(at)) return at;
      const rescheduled = await writer.run((tx): StoredInQueueRow | Refusal => {
        const waiting = findWaiting(tx, accountId, messageId);
        if (isRefusal(waiting)) return waiting;
        const { message, queued } = waiting;
        if (shownStatus(message) !== 'scheduled') return wrongState(message, 'rescheduled');
        const dueAt = Math.max(at, now);
        tx.queue.reschedule({ seq: message.seq, at: dueAt, ready: dueAt === now ? 1 : 0 });
        // Its lifetime begins when it is due.
        tx.messages.setExpiry(message.seq, message.expires_at + dueAt - queued.due_at, now);
        return { ...queued, ready: dueAt === now ? 1 : 0 };
      }, accountId);
      if (isRefusal(rescheduled)) return rescheduled;
      if (rescheduled.ready === 1) announce?.(rescheduled);
      return findMessage(tables, accountId, messageId);
    },
    /** For the operator: the daemon probes every suspended site within a second, with one connection each. */
    probeSuspended: (): Promise<void> => writer.run(({ settings }) => settings.countRetry()),
  };
}

export type QueuedMail = ReturnType<typeof createQueuedMail>;

const HELD_BY_CAMPAIGN = 'The message is held because its campaign is paused: resume the campaign to send it';
const HELD_SINCE_RESTORE =
  'The message is held because the service was restored from a backup and may have sent it before: the operator releases it with "postrider restore release"';

const HELD_BECAUSE = {
  account_disabled:
    'The message is held because its account is disabled: the operator releases it with "postrider account enable"',
  domain_failed:
    'The message is held because the verification of its domain has failed: correct the DNS records of the domain and verify it',
  sending_paused:
    'The message is held because the mail of its stream was stopped automatically: see GET /web-setup/reputation/limits',
};

/** Whether the message is held with its campaign, or would be when it is taken from the queue. */
function isHeld(tables: Tables, { job_id }: ListedMessage, queued: StoredInQueueRow): boolean {
  if (queued.due_at === HELD) return true;
  return (
    queued.campaign_seq !== null && job_id !== null && tables.campaignSends.statusOfJob(job_id) === 'paused'
  );
}

function notDeferred(message: ListedMessage, queued: StoredInQueueRow): Refusal {
  if (message.status !== 'queued') return wrongState(message, 'retried');
  return refuse(
    'INVALID_STATE',
    queued.ready === 1
      ? 'The message is due already and waits for its first attempt'
      : `The message is due at ${iso(queued.due_at)} and waits for its first attempt`,
  );
}

/** `obstacle` undefined: delivery runs in another process. */
function reportOf(obstacle: string | null | undefined): string {
  if (obstacle === undefined)
    return 'is due now; the running daemon tries it within a second, or as soon as its destination can be reached';
  return obstacle === null ? 'is due now and is tried immediately' : `is due now, but ${obstacle}`;
}

interface Waiting {
  message: ListedMessage;
  queued: StoredInQueueRow;
}

/** A message that is in the queue and not being sent. */
function findWaiting(tables: Tables, accountId: string | null, messageId: string): Waiting | Refusal {
  const message = findMessage(tables, accountId, messageId);
  if (isRefusal(message)) return message;
  const queued = tables.queue.get(message.seq);
  if (queued === null) {
    return refuse('INVALID_STATE', `The message is ${message.status} and no longer queued`);
  }
  return queued.lease === null ? { message, queued } : refuse('INVALID_STATE', 'The message is being sent');
}

/** Returns the same refusal for an unknown message and for one of another account. */
function findMessage(tables: Tables, accountId: string | null, messageId: string): ListedMessage | Refusal {
  const message = tables.messages.byId(messageId);
  return message === null || (accountId !== null && message.account_id !== accountId)
    ? refuse('MESSAGE_NOT_FOUND', `There is no message ${messageId}`)
    : message;
}

function wrongState(message: ListedMessage, action: string): Refusal {
  return refuse('INVALID_STATE', `A message that is ${message.status} cannot be ${action}`);
}

import type { Clock } from '../core/clock.ts';
import type { ExpiryClock } from '../core/expiry-clock.ts';
import type { Log } from '../core/log.ts';
import type { EventFields, Obstacle } from '../events/event-types.ts';
import type { Recorder } from '../events/record.ts';
import type { Writer } from '../store/database/writer.ts';
import type { MessageRow } from '../store/messages/messages.ts';
import { HELD, type QueuedMessage, type QueueKey } from '../store/messages/queue.ts';
import type { Tables } from '../store/tables.ts';
import type { DeliveryOutcome } from './attempt-result.ts';
import type { OutcomeUnit, Recording } from './recording.ts';
import type { Claims } from './scheduling/claims.ts';

/**
 * Takes messages from the queue and returns them to it. The functions for messages without a lease commit one unit of
 * work and then end the claim on the message; if it fails, the message stays in the queue and is skipped for a while. The
 * functions for leased messages (`putBack`, `failLeased`) are retried until they are recorded.
 */
export interface Leases {
  /**
   * Leases the message and makes it `sending`. `then` gets false when it is not sent: it was held, suppressed,
   * cancelled or given another path meanwhile. `onError` is called when the commit failed.
   */
  take(message: QueuedMessage, then: (taken: boolean) => void, onError?: () => void): void;
  /**
   * Leases the message and records its outcome in one commit, for mail that no worker gets. `then` is called with the
   * outcome when it is on disk; null: it has none.
   */
  conclude(message: QueuedMessage, unit: OutcomeUnit, then?: (outcome: DeliveryOutcome | null) => void): void;
  /** Ends a message that is not leased with `email_failed`. */
  fail(message: QueuedMessage, fields: EventFields['email_failed']): void;
  /** Makes a message that is not leased due in `waitMs`; its state does not change. */
  postpone(message: QueuedMessage, waitMs: number): void;
  /** Ends the lease of a message that no worker began: it is due in `waitMs`, in the state before the lease. */
  putBack(message: QueuedMessage, waitMs: number): void;
  /** Ends a leased message that no worker began with `email_failed`. */
  failLeased(message: QueuedMessage, fields: EventFields['email_failed']): void;
  /** Resolves when the commits in progress have ended. */
  settled(): Promise<void>;
}

export interface LeasesDeps {
  clock: Clock;
  expiry: Pick<ExpiryClock, 'now'>;
  log: Log;
  writer: Writer;
  recorder: Recorder;
  claims: Claims;
  recording: Pick<Recording, 'persist' | 'suspect'>;
  /** The daemon's generation, which every lease carries. */
  generation: number;
  /** Null: the message may be sent. Called inside the unit of work. */
  sendingObstacle(tables: Tables, message: MessageRow): Obstacle | null;
  /** Called when the outcome of a message is on disk; null: it has none now. */
  onOutcome(seq: number, outcome: DeliveryOutcome | null): void;
  /** Called when a message was put back. */
  onReturned(key: QueueKey): void;
}

/** Diagnostics of messages that expired while they were held. */
const HELD_UNTIL_EXPIRY = {
  account_disabled: 'the message was held because its account is disabled',
  domain_failed: 'the message was held because the verification of its domain has failed',
};

/**
 * A commit of `take`, `conclude`, `fail` or `postpone` that fails is logged and not retried. The commits in progress
 * are kept for `settled`; there is no other state and no timer.
 */
export function createLeases(deps: LeasesDeps): Leases {
  const { clock, expiry, log, writer, recorder, claims, recording } = deps;
  const inProgress = new Set<Promise<void>>();

  function commit<T>(
    message: QueuedMessage,
    unit: (tables: Tables) => T,
    then: (result: T) => void,
    onError?: () => void,
  ): void {
    // The type of a unit excludes promises, which a type parameter cannot express.
    const work = writer.run(unit as (tables: Tables) => never).then(
      (result: T) => {
        claims.release(message);
        then(result);
      },
      (error: unknown) => {
        log.error(
          { err: error, messageId: message.message_id },
          'queued message could not be updated; trying again later',
        );
        claims.holdOff(message);
        onError?.();
        recording.suspect();
      },
    );
    const tracked = work.finally(() => inProgress.delete(tracked));
    inProgress.add(tracked);
  }

  /** In a unit of work. False: the message is not sent, and the reason is recorded. */
  function lease(tables: Tables, message: QueuedMessage): boolean {
    const { seq } = message;
    if (!tables.queue.lease(seq, deps.generation, message)) return false;
    const current = tables.messages.bySeq(seq);
    if (current === null) {
      tables.queue.remove(seq);
      return false;
    }
    const obstacle = deps.sendingObstacle(tables, current);
    if (obstacle?.kind === 'hold') tables.queue.defer(seq, HELD);
    else if (obstacle?.kind === 'hold_until_expiry') holdUntilExpiry(tables, current, obstacle.reason);
    else if (obstacle !== null) recorder.message(tables, current, obstacle);
    else if (recorder.message(tables, current, { kind: 'email_sent', fields: {} })) return true;
    // The message is in a final state, so its queue row is obsolete.
    else tables.queue.remove(seq);
    return false;
  }

  /** A held message becomes due at its expiry, and fails when it is taken then. */
  function holdUntilExpiry(
    tables: Tables,
    message: MessageRow,
    reason: keyof typeof HELD_UNTIL_EXPIRY,
  ): void {
    if (message.expires_at > expiry.now()) return tables.queue.hold(message.seq, message.expires_at);
    const lastDiagnostic = HELD_UNTIL_EXPIRY[reason];
    const fields = { reason: 'expired', attempts: message.attempts, lastDiagnostic } as const;
    recorder.message(tables, message, { kind: 'email_failed', fields });
  }

  const recordFailure = (message: QueuedMessage, fields: EventFields['email_failed']) => (tables: Tables) => {
    const current = tables.messages.bySeq(message.seq);
    if (current === null) return null;
    // The clock was set, and its expiry was moved since it was read.
    if (fields.reason !== 'expired' || current.expires_at <= message.expires_at)
      recorder.message(tables, current, { kind: 'email_failed', fields });
    else if (current.status === 'sending') endLease(tables, message.seq, 0);
    return null;
  };

  function endLease(tables: Tables, seq: number, waitMs: number): void {
    const current = tables.messages.bySeq(seq);
    if (current !== null) recorder.returned(tables, current);
    if (waitMs === 0) tables.queue.release(seq, clock.now());
    else tables.queue.defer(seq, clock.now() + Math.ceil(waitMs));
  }

  return {
    take: (message, then, onError) =>
      commit(
        message,
        (tables) => lease(tables, message),
        (taken) => {
          if (!taken) deps.onOutcome(message.seq, null);
          then(taken);
        },
        onError,
      ),
    conclude: (message, unit, then) =>
      commit(
        message,
        (tables) => (lease(tables, message) ? unit(tables) : null),
        (outcome) => {
          deps.onOutcome(message.seq, outcome);
          then?.(outcome);
        },
      ),
    fail: (message, fields) =>
      commit(message, recordFailure(message, fields), () => deps.onOutcome(message.seq, null)),
    postpone: (message, waitMs) =>
      commit(
        message,
        (tables) => tables.queue.postpone(message.seq, clock.now() + Math.ceil(waitMs)),
        () => {},
      ),
    putBack: (message, waitMs) => {
      const { seq } = message;
      recording.persist(
        seq,
        (tables) => {
          endLease(tables, seq, waitMs);
          return null;
        },
        () => deps.onReturned(message),
      );
    },
    // Its lease lasts until the failure is recorded, so this is tried until it succeeds.
    failLeased: (message, fields) =>
      recording.persist(message.seq, recordFailure(message, fields), undefined, (tables) => {
        const current = tables.messages.bySeq(message.seq);
        if (current?.status === 'sending') recorder.endedWithoutEvent(tables, current, 'failed');
        return null;
      }),
    settled: async () => void (await Promise.all(inProgress)),
  };
}

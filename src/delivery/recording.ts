import { SECOND } from '../core/clock.ts';
import { withTimeout } from '../core/concurrency/with-timeout.ts';
import { errorText } from '../core/errors.ts';
import type { EventFields, Obstacle } from '../events/event-types.ts';
import type { Recorder } from '../events/record.ts';
import type { Context } from '../store/context.ts';
import type { MessageRow } from '../store/messages/messages.ts';
import { HELD, type QueuedMessage } from '../store/messages/queue.ts';
import type { Tables } from '../store/tables.ts';
import type { DeliveryOutcome } from './attempt-result.ts';
import type { Claims } from './scheduling/claims.ts';

/*
 * What delivery writes: it leases messages, records their outcomes and returns them to the queue.
 *
 * A message without a lease is only claimed (scheduling/claims.ts). Its functions (`lease`, `conclude`, `fail`, `postpone`)
 * commit one unit of work and then end the claim; if that fails, the message stays in the queue and is skipped for a while.
 *
 * A leased message would be sent twice if its outcome was lost: the unit of work (`persist`, `putBack`, `failLeased`) is
 * retried until it is recorded or the grace period of the shutdown is over. After MAX_TRIES a fallback replaces it, if
 * other outcomes can be recorded: then the cause is the message. While no outcome can be recorded, because of a full disk or
 * an unreadable table, no mail is accepted or started (`unrecorded`).
 */

export type Recording = ReturnType<typeof createRecording>;

/** In a unit of work: records the outcome of a message. Null: it has none now. */
export type OutcomeUnit = (tables: Tables) => DeliveryOutcome | null;

/** `replaced`: the fallback was recorded. `dropped`: nothing was, and the message will be sent again. */
export type Recorded = 'recorded' | 'replaced' | 'dropped';

export interface RecordingParts {
  recorder: Recorder;
  claims: Claims;
  /** The daemon's generation, which every lease carries. */
  generation: number;
  /** Null: the message may be sent. Called inside the unit of work. */
  sendingObstacle(tables: Tables, message: MessageRow): Obstacle | null;
  /** Called with each outcome that is on disk, for metrics and log. */
  observe(outcome: DeliveryOutcome): void;
  /** Pause before the first retry, ms; it doubles up to 5 s. Default: 1 s. */
  firstRetryMs?: number | undefined;
  /** Attempts to record an outcome before its fallback is recorded. Default: 20, about a minute and a half. */
  maxTries?: number;
}

const FIRST_RETRY_MS = SECOND;
const MAX_RETRY_MS = 5 * SECOND;
const MAX_TRIES = 20;
/** If this many outcomes failed and none was recorded in between, the cause is the database, not a message. */
const MIN_FAILING_OUTCOMES = 3;
/** An outcome that has failed for longer does not count: the cause is its message. */
const FAILING_PERIOD_MS = 60 * SECOND;
const READ_CHECK_INTERVAL_MS = 5 * SECOND;
const LOG_INTERVAL_MS = SECOND;

/** Diagnostics of messages that expired while they were held. */
const HELD_UNTIL_EXPIRY = {
  account_disabled: 'the message was held because its account is disabled',
  domain_failed: 'the message was held because the verification of its domain has failed',
  sending_paused: 'the message was held because the mail of its stream was stopped automatically',
};

/**
 * `unrecorded` is null until a check or several outcomes have failed: call `suspect` at the start to check. Outcomes
 * that wait are in memory only; each waits on a timer between its retries, which `drain` ends.
 */
export function createRecording(
  context: Pick<Context, 'clock' | 'monotonic' | 'expiry' | 'log' | 'tables' | 'writer'>,
  parts: RecordingParts,
) {
  const { clock, monotonic, expiry, log, tables, writer } = context;
  const { recorder, claims, generation, sendingObstacle } = parts;
  const { firstRetryMs = FIRST_RETRY_MS, maxTries = MAX_TRIES } = parts;
  /** Commits of messages without a lease. */
  const commits = new Set<Promise<unknown>>();
  /** Number of outcomes that are being recorded. */
  let pending = 0;
  /** Called when there are none. */
  let onNonePending = () => {};
  /** Outcomes that failed since the last one was recorded, with the time of their first failure. */
  const failing = new Map<number, number>();
  /** Messages whose outcome failed at least once. */
  const retried = new Set<number>();
  let failure: { since: number; reason: string } | null = null;
  let checking: Promise<void> | null = null;
  let readAt = Number.NEGATIVE_INFINITY;
  let loggedAt = Number.NEGATIVE_INFINITY;
  let notLogged = 0;
  /** Ends the pauses between retries when the daemon stops. */
  const draining = new AbortController();
  let dropped = false;
  const waiters = new Map<number, Set<(outcome: DeliveryOutcome | null) => void>>();

  /**
   * Leases the message and makes it `sending`. False when it is not sent: it was held, suppressed, cancelled or given
   * another path meanwhile, or the commit failed.
   */
  async function lease(message: QueuedMessage): Promise<boolean> {
    const taken = await commit(message, (tx) => leaseIn(tx, message));
    if (taken === false) announce(message.seq, null);
    return taken === true;
  }

  /**
   * Leases the message and records its outcome in one commit, for mail that no worker gets. Resolves with the outcome
   * when it is on disk; null: it has none.
   */
  async function conclude(message: QueuedMessage, unit: OutcomeUnit): Promise<DeliveryOutcome | null> {
    const outcome = await commit(message, (tx) => (leaseIn(tx, message) ? unit(tx) : null));
    if (outcome !== undefined) announce(message.seq, outcome);
    return outcome ?? null;
  }

  /** Ends a message that is not leased with `email_failed`. */
  async function fail(message: QueuedMessage, fields: EventFields['email_failed']): Promise<void> {
    const ended = await commit(message, (tx) => recordFailure(tx, message, fields));
    if (ended !== undefined) announce(message.seq, null);
  }

  /** Makes a message that is not leased due at `dueAt`, epoch ms; its state does not change. */
  async function postpone(message: QueuedMessage, dueAt: number): Promise<void> {
    await commit(message, (tx) => tx.queue.postpone(message, Math.ceil(dueAt)));
  }

  /** Resolves with the result of `unit`; undefined when the commit failed, which is logged and not retried. */
  async function commit<T>(message: QueuedMessage, unit: (all: Tables) => T): Promise<T | undefined> {
    // The type of a unit excludes promises, which a type parameter cannot express.
    const work = writer.run(unit as (all: Tables) => never);
    commits.add(work);
    try {
      const result: T = await work;
      claims.release(message);
      return result;
    } catch (error) {
      log.error(
        { err: error, messageId: message.message_id },
        'queued message could not be updated; trying again later',
      );
      claims.holdOff(message);
      suspect();
      return undefined;
    } finally {
      commits.delete(work);
    }
  }

  /** Resolves when the commits of messages without a lease that are in progress have ended. */
  async function settled(): Promise<void> {
    await Promise.allSettled(commits);
  }

  /** In a unit of work. False: the message is not sent, and the reason is recorded. */
  function leaseIn(tx: Tables, message: QueuedMessage): boolean {
    const { seq } = message;
    if (!tx.queue.lease(seq, generation, message)) return false;
    const current = tx.messages.bySeq(seq);
    if (current === null) {
      tx.queue.remove(seq);
      return false;
    }
    const obstacle = sendingObstacle(tx, current);
    if (obstacle?.kind === 'hold') tx.queue.defer(seq, HELD);
    else if (obstacle?.kind === 'hold_until_expiry') holdUntilExpiry(tx, current, obstacle.reason);
    else if (obstacle !== null) recorder.message(tx, current, obstacle);
    else if (recorder.message(tx, current, { kind: 'email_sent', fields: {} })) return true;
    // The message is in a final state, so its queue row is obsolete.
    else tx.queue.remove(seq);
    return false;
  }

  /** A held message becomes due at its expiry, and fails when it is taken then. */
  function holdUntilExpiry(tx: Tables, message: MessageRow, reason: keyof typeof HELD_UNTIL_EXPIRY): void {
    if (message.expires_at > expiry.now()) return tx.queue.hold(message.seq, message.expires_at);
    const lastDiagnostic = HELD_UNTIL_EXPIRY[reason];
    const fields = { reason: 'expired', attempts: message.attempts, lastDiagnostic } as const;
    recorder.message(tx, message, { kind: 'email_failed', fields });
  }

  function recordFailure(tx: Tables, message: QueuedMessage, fields: EventFields['email_failed']): null {
    const current = tx.messages.bySeq(message.seq);
    if (current === null) return null;
    // The clock was set, and its expiry was moved since it was read.
    if (fields.reason !== 'expired' || current.expires_at <= message.expires_at)
      recorder.message(tx, current, { kind: 'email_failed', fields });
    else if (current.status === 'sending') endLease(tx, message.seq, 0);
    return null;
  }

  function endLease(tx: Tables, seq: number, waitMs: number): void {
    const current = tx.messages.bySeq(seq);
    if (current !== null) recorder.returned(tx, current);
    if (waitMs === 0) tx.queue.release(seq, clock.now());
    else tx.queue.defer(seq, clock.now() + Math.ceil(waitMs));
  }

  /**
   * Ends the lease of a message that no worker began: it is due in `waitMs`, in the state before the lease. Resolves
   * with whether it is on disk.
   */
  async function putBack({ seq }: QueuedMessage, waitMs: number): Promise<boolean> {
    const recorded = await persist(seq, (tx) => {
      endLease(tx, seq, waitMs);
      return null;
    });
    return recorded === 'recorded';
  }

  /** Ends a leased message that no worker began with `email_failed`. */
  async function failLeased(message: QueuedMessage, fields: EventFields['email_failed']): Promise<void> {
    await persist(
      message.seq,
      (tx) => recordFailure(tx, message, fields),
      (tx) => {
        const current = tx.messages.bySeq(message.seq);
        if (current?.status === 'sending') recorder.endedWithoutEvent(tx, current, 'failed');
        return null;
      },
    );
  }

  /** Commits `unit`, with retries until it, or its fallback, is on disk. */
  async function persist(seq: number, unit: OutcomeUnit, fallback?: OutcomeUnit): Promise<Recorded> {
    pending++;
    try {
      return await persistUnit(seq, unit, fallback);
    } finally {
      failing.delete(seq);
      retried.delete(seq);
      pending--;
      if (pending === 0) onNonePending();
    }
  }

  async function persistUnit(seq: number, unit: OutcomeUnit, fallback?: OutcomeUnit): Promise<Recorded> {
    for (let tries = 1; ; tries++) {
      let outcome: DeliveryOutcome | null;
      // While the database records nothing, the cause is not the message.
      const isGivenUp = tries > maxTries && fallback !== undefined && failure === null;
      try {
        outcome = await writer.run(isGivenUp ? fallback : unit);
      } catch (error) {
        failing.set(seq, failing.get(seq) ?? monotonic.now());
        retried.add(seq);
        if (manyFail()) markFailing(errorText(error));
        logFailure(error, seq, tries);
        suspect();
        if (dropped) return 'dropped';
        await pause(
          draining.signal.aborted ? firstRetryMs : Math.min(firstRetryMs * 2 ** (tries - 1), MAX_RETRY_MS),
        );
        if (dropped) return 'dropped';
        continue;
      }
      failing.clear();
      markWorking();
      if (isGivenUp)
        log.error(
          { message: seq, tries, status: outcome?.status },
          'outcome cannot be recorded; recorded only the status of its message',
        );
      announce(seq, outcome);
      return isGivenUp ? 'replaced' : 'recorded';
    }
  }

  /** The outcome is on disk: an error of an observer must not cause another attempt to record it. */
  function announce(seq: number, outcome: DeliveryOutcome | null): void {
    try {
      if (outcome !== null) parts.observe(outcome);
      for (const resolve of waiters.get(seq) ?? []) resolve(outcome);
    } catch (error) {
      log.error({ err: error, message: seq }, 'outcome was recorded, but not announced');
    }
  }

  /**
   * The first outcome of the message; null after `ms`, when the signal aborts, or when it has none now. There are no more
   * of these waits than requests in progress.
   */
  function firstOutcome(seq: number, ms: number, signal: AbortSignal): Promise<DeliveryOutcome | null> {
    return new Promise((resolve) => {
      // The event of a signal that has aborted already is over.
      if (signal.aborted) return resolve(null);
      const waiting = waiters.get(seq) ?? new Set();
      waiters.set(seq, waiting);
      const done = (outcome: DeliveryOutcome | null) => {
        clearTimeout(timer);
        signal.removeEventListener('abort', giveUp);
        waiting.delete(done);
        if (waiting.size === 0) waiters.delete(seq);
        resolve(outcome);
      };
      const giveUp = () => done(null);
      const timer = setTimeout(giveUp, ms);
      signal.addEventListener('abort', giveUp);
      waiting.add(done);
    });
  }

  function pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        draining.signal.removeEventListener('abort', done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      if (!draining.signal.aborted) draining.signal.addEventListener('abort', done);
    });
  }

  /** A full disk fails every outcome: at most one line per second. */
  function logFailure(error: unknown, seq: number, tries: number): void {
    if (monotonic.now() - loggedAt < LOG_INTERVAL_MS) {
      notLogged++;
      return;
    }
    log.error({ err: error, message: seq, tries, notLogged }, 'outcome could not be recorded; trying again');
    loggedAt = monotonic.now();
    notLogged = 0;
  }

  function markFailing(reason: string): void {
    if (failure === null) log.error({ reason }, 'outcomes cannot be recorded');
    failure = { since: failure?.since ?? monotonic.now(), reason };
  }

  function manyFail(): boolean {
    const since = monotonic.now() - FAILING_PERIOD_MS;
    return [...failing.values()].filter((at) => at > since).length >= MIN_FAILING_OUTCOMES;
  }

  function markWorking(): void {
    if (failure === null) return;
    log.info(
      { seconds: Math.round((monotonic.now() - failure.since) / SECOND) },
      'outcomes are recorded again',
    );
    failure = null;
  }

  /** Null while outcomes can be recorded, else since when they cannot, and why. */
  function unrecorded(): string | null {
    if (failure === null) return null;
    const seconds = Math.round((monotonic.now() - failure.since) / SECOND);
    return `outcomes could not be recorded for ${seconds} s: ${failure.reason}`;
  }

  /** Checks whether the database accepts events, because another unit of work that records events failed. */
  function suspect(): void {
    void runCheck(true);
  }

  async function runCheck(suspected: boolean): Promise<void> {
    if (checking !== null) return checking;
    checking = checkOnce(suspected).finally(() => {
      checking = null;
    });
    return checking;
  }

  async function checkOnce(suspected: boolean): Promise<void> {
    try {
      if (!suspected && failure === null) {
        // While nothing fails the table is only read: a write would cost a flush.
        if (monotonic.now() - readAt < READ_CHECK_INTERVAL_MS) return;
        readAt = monotonic.now();
        tables.events.checkReadable();
        return;
      }
      await writer.run(recorder.probe);
      // While all outcomes fail, a successful insert of an event does not prove that they can be recorded.
      if (!manyFail()) markWorking();
    } catch (error) {
      markFailing(errorText(error));
    }
  }

  /**
   * Waits until all outcomes are recorded, at most until `until` (monotonic). Resolves with the number of those that
   * were not recorded; they are dropped.
   */
  async function drain(until: number): Promise<number> {
    draining.abort();
    const none = new Promise<void>((resolve) => {
      onNonePending = resolve;
    });
    if (pending > 0) await withTimeout(none, Math.max(0, until - monotonic.now()));
    dropped = true;
    return pending;
  }

  return {
    lease,
    conclude,
    fail,
    postpone,
    settled,
    putBack,
    failLeased,
    persist,
    /** Number of outcomes that wait to be recorded. */
    pending: () => pending,
    /** Whether the outcome of a message could not be recorded yet. */
    isUnrecorded: (seq: number): boolean => retried.has(seq),
    firstOutcome,
    suspect,
    unrecorded,
    /** Checks that events can be recorded. Call about once per second. */
    check: () => runCheck(false),
    drain,
  };
}

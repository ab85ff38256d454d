import { type Clock, SECOND } from '../core/clock.ts';
import { within } from '../core/concurrency/within.ts';
import { errorText } from '../core/errors.ts';
import type { Log } from '../core/log.ts';
import type { Recorder } from '../events/record.ts';
import type { Writer } from '../store/database/writer.ts';
import type { Tables } from '../store/tables.ts';
import type { DeliveryOutcome } from './attempt-result.ts';

/**
 * Records outcomes. A message whose outcome is lost would be sent twice, so a unit of work that fails (a full disk, an
 * unreadable table) is retried until it is recorded or the grace period of the shutdown is over. The module also knows
 * whether events can be recorded at all: while they cannot, no mail is accepted or started.
 */
export interface Recording {
  /**
   * Commits `unit`, with retries until it succeeds, and then calls `then`. After `maxTries` attempts, while other outcomes
   * can be recorded, `fallback` replaces the unit.
   */
  persist(seq: number, unit: OutcomeUnit, then?: () => void, fallback?: OutcomeUnit): void;
  /** Checks whether the database accepts events, because another unit of work that records events failed. */
  suspect(): void;
  /** Null while outcomes can be recorded, else since when they cannot, and why. */
  unrecorded(): string | null;
  /** Number of outcomes that wait to be recorded. */
  pending(): number;
  /** Checks that events can be recorded. Call about once per second. */
  check(): Promise<void>;
  /**
   * Waits until all outcomes are recorded, at most until `until` (monotonic). Resolves with the number of those that
   * were not recorded; they are dropped.
   */
  drain(until: number): Promise<number>;
}

export type OutcomeUnit = (tables: Tables) => DeliveryOutcome | null;

export interface RecordingDeps {
  writer: Writer;
  tables: Tables;
  recorder: Recorder;
  monotonic: Clock;
  log: Log;
  /** Called after each commit. */
  onOutcome(seq: number, outcome: DeliveryOutcome | null): void;
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

/**
 * `unrecorded` is null until a check or several outcomes have failed: call `suspect` at the start to check. Outcomes
 * that wait are in memory only; each waits on a timer between its retries, which `drain` ends.
 */
export function createRecording(deps: RecordingDeps): Recording {
  const {
    writer,
    tables,
    recorder,
    monotonic,
    log,
    firstRetryMs = FIRST_RETRY_MS,
    maxTries = MAX_TRIES,
  } = deps;
  const pending = new Map<number, Promise<void>>();
  /** Outcomes that failed since the last one was recorded, with the time of their first failure. */
  const failing = new Map<number, number>();
  let failure: { since: number; reason: string } | null = null;
  let checking: Promise<void> | null = null;
  let readAt = Number.NEGATIVE_INFINITY;
  let loggedAt = Number.NEGATIVE_INFINITY;
  let notLogged = 0;
  /** Ends the pauses between retries when the daemon stops. */
  const draining = new AbortController();
  let dropped = false;

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

  async function commit(
    seq: number,
    unit: OutcomeUnit,
    then?: () => void,
    fallback?: OutcomeUnit,
  ): Promise<void> {
    for (let tries = 1; ; tries++) {
      let outcome: DeliveryOutcome | null;
      // While the database records nothing, the cause is not the message.
      const isGivenUp = tries > maxTries && fallback !== undefined && failure === null;
      try {
        outcome = await writer.run(isGivenUp ? fallback : unit);
      } catch (error) {
        failing.set(seq, failing.get(seq) ?? monotonic.now());
        if (manyFail()) markFailing(errorText(error));
        logFailure(error, seq, tries);
        void check(true);
        if (dropped) return;
        await pause(
          draining.signal.aborted ? firstRetryMs : Math.min(firstRetryMs * 2 ** (tries - 1), MAX_RETRY_MS),
        );
        if (dropped) return;
        continue;
      }
      failing.clear();
      markWorking();
      if (isGivenUp)
        log.error(
          { message: seq, tries, status: outcome?.status },
          'outcome cannot be recorded; recorded only the status of its message',
        );
      announce(seq, outcome, isGivenUp ? undefined : then);
      return;
    }
  }

  /** The outcome is on disk: an error in a callback must not cause another attempt to record it. */
  function announce(seq: number, outcome: DeliveryOutcome | null, then?: () => void): void {
    try {
      deps.onOutcome(seq, outcome);
      then?.();
    } catch (error) {
      log.error({ err: error, message: seq }, 'outcome was recorded, but not announced');
    }
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

  async function check(suspected: boolean): Promise<void> {
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

  return {
    persist: (seq, unit, then, fallback) => {
      const work = commit(seq, unit, then, fallback).finally(() => {
        failing.delete(seq);
        pending.delete(seq);
      });
      pending.set(seq, work);
    },
    suspect: () => void check(true),
    unrecorded: () => {
      if (failure === null) return null;
      const seconds = Math.round((monotonic.now() - failure.since) / SECOND);
      return `outcomes could not be recorded for ${seconds} s: ${failure.reason}`;
    },
    pending: () => pending.size,
    check: () => check(false),
    drain: async (until) => {
      draining.abort();
      const all = async () => {
        while (pending.size > 0) await Promise.all(pending.values());
      };
      await within(all(), Math.max(0, until - monotonic.now()));
      dropped = true;
      return pending.size;
    },
  };
}

import { type Clock, SECOND } from '../core/clock.ts';
import type { Log } from '../core/log.ts';
import type { Recorder } from '../events/record.ts';
import type { Tables } from '../store/tables.ts';
import type { Writer } from '../store/writer.ts';
import type { Outcome } from './outcome.ts';

/**
 * Records what happened to messages. An outcome that was forgotten would be a message sent twice, so a unit of
 * work that fails (a full disk, an unreadable table) is kept and tried again until it is recorded or the
 * shutdown's time is over. It also knows whether events can be recorded at all: no mail is accepted or started
 * while they cannot.
 */
export interface Recording {
  /** Commits `unit`, however many tries it takes, and then calls `then`. */
  persist(seq: number, unit: OutcomeUnit, then?: () => void): void;
  /** Something else that records events failed: finds out whether it was the database. */
  suspect(error: unknown): void;
  /** Null while outcomes can be recorded, else since when they cannot, and why. */
  unrecorded(): string | null;
  /** Outcomes that wait to be recorded. */
  pending(): number;
  /** Verifies that events can be recorded. Call every second or so. */
  check(): Promise<void>;
  /** Waits until all are recorded, until `until` (monotonic) at most. Returns how many are not; they are given up. */
  drain(until: number): Promise<number>;
}

export type OutcomeUnit = (tables: Tables) => Outcome | null;

export interface RecordingDeps {
  writer: Writer;
  tables: Tables;
  recorder: Recorder;
  monotonic: Clock;
  log: Log;
  /** Called with each recorded outcome. */
  recorded(seq: number, outcome: Outcome | null): void;
}

const FIRST_RETRY_MS = SECOND;
const LONGEST_RETRY_MS = 5 * SECOND;
/** So many outcomes that failed, and none that was recorded in between: it is not the messages. */
const FAILING_OUTCOMES = 3;
/** An outcome that fails for longer is a case of its own. */
const FAILING_MS = 60 * SECOND;
const READ_CHECK_MS = 5 * SECOND;
const LOG_MS = SECOND;

export function createRecording(deps: RecordingDeps): Recording {
  const { writer, tables, recorder, monotonic, log } = deps;
  const pending = new Map<number, Promise<void>>();
  /** Outcomes that failed since the last one was recorded, with the time of their first failure. */
  const failing = new Map<number, number>();
  let failure: { since: number; reason: string } | null = null;
  let checking: Promise<void> | null = null;
  let readAt = Number.NEGATIVE_INFINITY;
  let loggedAt = Number.NEGATIVE_INFINITY;
  let notLogged = 0;
  /** Ends the pauses between tries when it is time to hurry. */
  const draining = new AbortController();
  let givenUp = false;

  function fails(reason: string): void {
    if (failure === null) log.error({ reason }, 'outcomes cannot be recorded');
    failure = { since: failure?.since ?? monotonic.now(), reason };
  }

  function manyFail(): boolean {
    const since = monotonic.now() - FAILING_MS;
    return [...failing.values()].filter((at) => at > since).length >= FAILING_OUTCOMES;
  }

  function works(): void {
    if (failure === null) return;
    log.info(
      { seconds: Math.round((monotonic.now() - failure.since) / SECOND) },
      'outcomes are recorded again',
    );
    failure = null;
  }

  async function commit(seq: number, unit: OutcomeUnit, then?: () => void): Promise<void> {
    for (let tries = 1; ; tries++) {
      let outcome: Outcome | null;
      try {
        outcome = await writer.run(unit);
      } catch (error) {
        failing.set(seq, failing.get(seq) ?? monotonic.now());
        if (manyFail()) fails(messageOf(error));
        logFailure(error, seq, tries);
        void check(true);
        if (givenUp) return;
        await pause(
          draining.signal.aborted ? SECOND : Math.min(FIRST_RETRY_MS * 2 ** (tries - 1), LONGEST_RETRY_MS),
        );
        if (givenUp) return;
        continue;
      }
      failing.clear();
      works();
      announce(seq, outcome, then);
      return;
    }
  }

  /** It is on disk: what fails from here on must not record it again. */
  function announce(seq: number, outcome: Outcome | null, then?: () => void): void {
    try {
      deps.recorded(seq, outcome);
      then?.();
    } catch (error) {
      log.error({ err: error, message: seq }, 'outcome recorded, but not announced');
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

  /** A full disk fails every outcome: one line a second is enough. */
  function logFailure(error: unknown, seq: number, tries: number): void {
    if (monotonic.now() - loggedAt < LOG_MS) {
      notLogged++;
      return;
    }
    log.error({ err: error, message: seq, tries, notLogged }, 'outcome could not be recorded; trying again');
    loggedAt = monotonic.now();
    notLogged = 0;
  }

  async function check(suspected: boolean): Promise<void> {
    if (checking !== null) return checking;
    checking = look(suspected).finally(() => {
      checking = null;
    });
    return checking;
  }

  async function look(suspected: boolean): Promise<void> {
    try {
      if (!suspected && failure === null) {
        // A write would cost a flush: while nothing is wrong the table is only read.
        if (monotonic.now() - readAt < READ_CHECK_MS) return;
        readAt = monotonic.now();
        tables.events.checkReadable();
        return;
      }
      await writer.run(recorder.tryInsert);
      // That an event can be inserted says little about the rest of an outcome while all of those fail.
      if (!manyFail()) works();
    } catch (error) {
      fails(messageOf(error));
    }
  }

  return {
    persist: (seq, unit, then) => {
      const work = commit(seq, unit, then).finally(() => {
        failing.delete(seq);
        pending.delete(seq);
      });
      pending.set(seq, work);
    },
    suspect: () => void check(true),
    unrecorded: () => {
      if (failure === null) return null;
      const seconds = Math.round((monotonic.now() - failure.since) / SECOND);
      return `outcomes cannot be recorded since ${seconds} s: ${failure.reason}`;
    },
    pending: () => pending.size,
    check: () => check(false),
    drain: async (until) => {
      draining.abort();
      let timer: NodeJS.Timeout | undefined;
      const over = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, Math.max(0, until - monotonic.now()));
      });
      const all = async () => {
        while (pending.size > 0) await Promise.all(pending.values());
      };
      await Promise.race([all(), over]);
      clearTimeout(timer);
      givenUp = true;
      return pending.size;
    },
  };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

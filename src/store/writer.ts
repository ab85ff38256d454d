import { setTimeout as sleep } from 'node:timers/promises';
import { isRefusal } from '../core/refusal.ts';
import type { Database } from './database.ts';
import { isBusy, StoreUnavailable } from './failure.ts';
import type { Tables } from './tables.ts';
import type { WriteAheadLog } from './write-ahead-log.ts';

/**
 * The only way to write: units of work that arrive together share one commit (group commit), because a commit
 * costs a disk flush and a unit costs microseconds. Each unit runs in its own savepoint, so that one that throws,
 * or returns a Refusal, leaves no trace while the others of its group are committed. A unit's promise settles
 * after the commit that holds its rows is on disk: a success means that it is stored. While one group is being
 * flushed, the next one gathers.
 *
 * Another process may hold the write lock (a command, a backup tool). The writer then retries from timers, for
 * `lockWaitMs` per unit, and rejects with StoreUnavailable. With a busy timeout of 0 on the connection (see
 * `openDatabase`) the event loop is never blocked by a lock.
 */
export interface Writer {
  /**
   * Runs `unit` in the next group. The unit is synchronous by type: a promise inside a transaction would
   * outlive it. Rejects with what the unit threw, or with the commit's error.
   */
  run<T>(unit: Unit<T>): Promise<T>;
  /**
   * Resolves once everything readable so far is durable: immediately, unless a commit is being flushed. Callers
   * that report what they read to somebody else wait for it. Rejects when the flush fails.
   */
  settled(): Promise<void>;
  /** Commits what waits and rejects what comes after. */
  close(): Promise<void>;
}

export type Unit<T> = (tables: Tables) => T extends PromiseLike<unknown> ? never : T;

interface Waiting {
  unit: (tables: Tables) => unknown;
  resolve: (value: unknown) => void;
  reject: (error: unknown) => void;
  /** Of the monotonic clock. */
  since: number;
}

/**
 * `settled`: functions that settle each unit, to be called once the commit is on disk; empty when the commit
 * failed, which the units know then. `locked`: nothing was tried, another process holds the lock.
 */
type CommitResult = { settled: (() => void)[] } | { locked: unknown };

export interface WriterOptions {
  /** Flushes a commit to disk without blocking the event loop; left out: the commit itself flushes. */
  log?: WriteAheadLog;
  /**
   * The flush failed: what is in the file and what is only in memory cannot be told apart any more. All waiting
   * units are rejected and no more are accepted; the process has to exit, and the next one reads the disk.
   */
  onLost?(error: unknown): void;
  /** How long a unit waits for a lock that another process holds. */
  lockWaitMs?: number;
}

/** Units in one commit at most: bounds how long a group holds the event loop. */
const GROUP = 256;
const LOCK_WAIT_MS = 5000;
/** Pauses between attempts to get the lock: doubled each time. */
const FIRST_RETRY_MS = 2;
const LONGEST_RETRY_MS = 100;

export function createWriter(db: Database, tables: Tables, options: WriterOptions = {}): Writer {
  const { log, lockWaitMs = LOCK_WAIT_MS } = options;
  const begin = db.prepare('BEGIN IMMEDIATE');
  const commit = db.prepare('COMMIT');
  const rollback = db.prepare('ROLLBACK');
  const savepoint = db.prepare('SAVEPOINT unit');
  const release = db.prepare('RELEASE unit');
  const undo = db.prepare('ROLLBACK TO unit');
  let waiting: Waiting[] = [];
  let working: Promise<void> | null = null;
  let flushing: Promise<void> = Promise.resolve();
  let closed = false;

  async function work(): Promise<void> {
    let retry = FIRST_RETRY_MS;
    do {
      // Units that arrive in this turn of the event loop still join the group.
      await new Promise(setImmediate);
      const group = waiting.slice(0, GROUP);
      const result = commitGroup(group);
      if ('locked' in result) {
        rejectOverdue(result.locked);
        await sleep(retry);
        retry = Math.min(2 * retry, LONGEST_RETRY_MS);
        continue;
      }
      retry = FIRST_RETRY_MS;
      waiting = waiting.slice(group.length);
      const { settled } = result;
      try {
        if (log !== undefined && settled.length > 0) {
          flushing = log.flush();
          await flushing;
        }
        for (const settle of settled) settle();
      } catch (error) {
        closed = true;
        for (const entry of [...group, ...waiting.splice(0)]) entry.reject(error);
        options.onLost?.(error);
      }
    } while (waiting.length > 0);
    working = null;
  }

  /** Units that have waited for the lock long enough are rejected; the others stay in line. */
  function rejectOverdue(locked: unknown): void {
    const overdue = performance.now() - lockWaitMs;
    const left = waiting.filter(({ since }) => since > overdue);
    const error = new StoreUnavailable(
      'busy',
      `another process has held the lock of the database for ${lockWaitMs / 1000} s`,
      { cause: locked },
    );
    for (const entry of waiting) if (entry.since <= overdue) entry.reject(error);
    waiting = left;
  }

  function commitGroup(group: Waiting[]): CommitResult {
    const fail = (error: unknown): CommitResult => {
      if (db.inTransaction) rollback.run();
      for (const entry of group) entry.reject(error);
      return { settled: [] };
    };
    try {
      begin.run();
    } catch (error) {
      return isBusy(error) ? { locked: error } : fail(error);
    }
    try {
      const settled = group.map(runUnit);
      commit.run();
      return { settled };
    } catch (error) {
      return fail(error);
    }
  }

  function runUnit(entry: Waiting): () => void {
    savepoint.run();
    try {
      const value = entry.unit(tables);
      if (isRefusal(value)) undo.run();
      release.run();
      return () => entry.resolve(value);
    } catch (error) {
      // A full disk may have ended the whole transaction already: then the group fails, in commitGroup.
      if (!db.inTransaction) throw error;
      undo.run();
      release.run();
      return () => entry.reject(error);
    }
  }

  return {
    run: (unit) =>
      new Promise((resolve, reject) => {
        if (closed) {
          reject(new StoreUnavailable('closing', 'the database is closing'));
          return;
        }
        waiting.push({
          unit,
          resolve: resolve as (value: unknown) => void,
          reject,
          since: performance.now(),
        });
        working ??= work();
      }),
    settled: () => flushing,
    close: async () => {
      closed = true;
      await working;
    },
  };
}

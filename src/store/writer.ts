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
   * outlive it. Rejects with what the unit threw, or with the commit's error. `share` names an account: where more
   * units wait than a group holds, each share has its turn, and units of one share keep their order.
   */
  run<T>(unit: Unit<T>, share?: string): Promise<T>;
  /**
   * Resolves once everything readable so far is durable: immediately, unless a commit is being flushed. Callers
   * that report what they read to somebody else wait for it. Rejects when the flush fails.
   */
  settled(): Promise<void>;
  /** Whether many units wait: work that can be done later waits with its next unit. */
  isCrowded(): boolean;
  /** Resolves after a checkpoint that began after the call; see `WriterOptions.onCheckpointIncomplete`. */
  checkpoint(): Promise<void>;
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

/** A unit that has run in the open transaction. */
interface RunUnit {
  entry: Waiting;
  settle: () => void;
}

export interface WriterOptions {
  /** Flushes a commit to disk without blocking the event loop; left out: the commit itself flushes. */
  log?: WriteAheadLog;
  /**
   * The flush failed: what is in the file and what is only in memory cannot be told apart any more. All waiting
   * units are rejected and no more are accepted; the process has to exit, and the next one reads the disk.
   */
  onLost?(error: unknown): void;
  /** A checkpoint failed: nothing is lost, and it is tried again when the log has grown. */
  onCheckpointFailed?(error: unknown): void;
  /** Readers still needed a part of the log: it grows until a checkpoint finds none. */
  onCheckpointIncomplete?(): void;
  /** How long a unit waits for a lock that another process holds. */
  lockWaitMs?: number;
}

/** Units in one commit at most: bounds how long a unit waits for others. */
const GROUP = 64;
/**
 * No further unit begins after so long, as some write megabytes: the rest goes into the next commit. Time in which
 * the process did not run at all does not count.
 */
const GROUP_MS = 10;
const CROWDED = 16;
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
  /** By share, in the order of their turns. */
  const waiting = new Map<string, Waiting[]>();
  const checkpointRequests: (() => void)[] = [];
  let working: Promise<void> | null = null;
  let flushing: Promise<void> = Promise.resolve();
  let closed = false;

  async function work(): Promise<void> {
    let retry = FIRST_RETRY_MS;
    do {
      // Units that arrive in this turn of the event loop still join the group.
      await new Promise(setImmediate);
      const locked = beginGroup();
      if (locked !== null) {
        rejectOverdue(locked);
        await sleep(retry);
        retry = Math.min(2 * retry, LONGEST_RETRY_MS);
        continue;
      }
      retry = FIRST_RETRY_MS;
      if (db.inTransaction) await flushGroup(commitGroup());
      if (log !== undefined && (log.isLong() || checkpointRequests.length > 0)) await checkpoint(log);
    } while (waiting.size > 0 || checkpointRequests.length > 0);
    working = null;
  }

  /** The error when another process holds the lock. Any other error rejects a group. */
  function beginGroup(): unknown {
    try {
      begin.run();
      return null;
    } catch (error) {
      if (isBusy(error)) return error;
      for (const entry of takeUnits(GROUP)) entry.reject(error);
      return null;
    }
  }

  /** Units that have waited for the lock long enough are rejected; the others stay in line. */
  function rejectOverdue(locked: unknown): void {
    const overdue = performance.now() - lockWaitMs;
    const error = new StoreUnavailable(
      'busy',
      `another process has held the lock of the database for ${lockWaitMs / 1000} s`,
      { cause: locked },
    );
    for (const [share, units] of waiting) {
      const left = units.filter(({ since }) => since > overdue);
      for (const entry of units) if (entry.since <= overdue) entry.reject(error);
      if (left.length === 0) waiting.delete(share);
      else waiting.set(share, left);
    }
  }

  /** The next unit of the share whose turn it is; undefined when none waits. */
  function nextUnit(): Waiting | undefined {
    const [first] = waiting;
    if (first === undefined) return undefined;
    const [share, units] = first;
    const unit = units.shift();
    // Put back, the share comes last.
    waiting.delete(share);
    if (units.length > 0) waiting.set(share, units);
    return unit;
  }

  /** In a group that is cut short by an interruption, so many units would cost many more commits. */
  function isCrowded(): boolean {
    let units = 0;
    for (const { length } of waiting.values()) {
      units += length;
      if (units >= CROWDED) return true;
    }
    return false;
  }

  function takeUnits(most: number): Waiting[] {
    const units: Waiting[] = [];
    while (units.length < most) {
      const unit = nextUnit();
      if (unit === undefined) break;
      units.push(unit);
    }
    return units;
  }

  /** Runs units in the open transaction and commits it. `settle` of each is to be called once it is on disk. */
  function commitGroup(): RunUnit[] {
    const group: RunUnit[] = [];
    const isOver = stopwatch(isCrowded());
    let current: Waiting | undefined;
    try {
      while (group.length < GROUP && !isOver()) {
        current = nextUnit();
        if (current === undefined) break;
        group.push({ entry: current, settle: runUnit(current) });
      }
      current = undefined;
      tables.contacts.mergeIndex();
      commit.run();
      return group;
    } catch (error) {
      if (db.inTransaction) rollback.run();
      for (const { entry } of group) entry.reject(error);
      current?.reject(error);
      return [];
    }
  }

  async function flushGroup(group: readonly RunUnit[]): Promise<void> {
    try {
      if (log !== undefined && group.length > 0) {
        flushing = log.flush();
        await flushing;
      }
      for (const { settle } of group) settle();
    } catch (error) {
      closed = true;
      for (const { entry } of group) entry.reject(error);
      for (const entry of takeUnits(Number.POSITIVE_INFINITY)) entry.reject(error);
      options.onLost?.(error);
    }
  }

  async function checkpoint(ofLog: WriteAheadLog): Promise<void> {
    const requests = checkpointRequests.splice(0);
    try {
      const { isComplete } = await ofLog.checkpoint();
      if (!isComplete) options.onCheckpointIncomplete?.();
    } catch (error) {
      options.onCheckpointFailed?.(error);
    } finally {
      for (const resolve of requests) resolve();
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
    run: (unit, share = '') =>
      new Promise((resolve, reject) => {
        if (closed) {
          reject(new StoreUnavailable('closing', 'the database is closing'));
          return;
        }
        const units = waiting.get(share) ?? [];
        units.push({
          unit,
          resolve: resolve as (value: unknown) => void,
          reject,
          since: performance.now(),
        });
        waiting.set(share, units);
        working ??= work();
      }),
    settled: () => flushing,
    isCrowded,
    checkpoint: () =>
      new Promise((resolve) => {
        if (closed || log === undefined) return resolve();
        checkpointRequests.push(resolve);
        working ??= work();
      }),
    close: async () => {
      closed = true;
      await working;
    },
  };
}

/**
 * Tells whether GROUP_MS have passed, by the clock and, if `withCpu`, in CPU time of the process. Reading that costs
 * as much as a unit, as the system adds up all threads.
 */
function stopwatch(withCpu: boolean): () => boolean {
  const end = performance.now() + GROUP_MS;
  const before = withCpu ? process.cpuUsage() : null;
  return () => {
    if (performance.now() < end) return false;
    if (before === null) return true;
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000 >= GROUP_MS;
  };
}

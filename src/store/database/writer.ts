import { openSync, readSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { createFairQueue } from '../../core/concurrency/fair-queue.ts';
import { isRefusal } from '../../core/refusal.ts';
import type { CountedMessages } from '../messages/hourly-counts.ts';
import type { PendingCounts } from '../pending-counts.ts';
import type { Tables } from '../tables.ts';
import type { Database } from './database.ts';
import { isBusy, StoreUnavailable } from './failure.ts';
import { statements } from './statements.ts';
import type { WriteAheadLog } from './write-ahead-log.ts';

export type Unit<T> = (tables: Tables) => T extends PromiseLike<unknown> ? never : T;

interface Waiting {
  unit: (tables: Tables) => unknown;
  resolve: (value: unknown) => void;
  reject: (error: unknown) => void;
  /** Milliseconds of the monotonic clock. */
  since: number;
}

/** A unit that has run in the open transaction. */
interface RunUnit {
  entry: Waiting;
  settle: () => void;
}

/** What is called when a commit is on disk, by what it is for. */
type Hooks = Map<unknown, () => void>;

/** The units of a transaction that was committed; empty when it was rolled back. */
interface Group {
  units: RunUnit[];
  hooks: Hooks;
  counted: readonly CountedMessages[];
  /** Time of the transaction, ms. */
  ms: number;
}

export interface WriterOptions {
  /** Flushes a commit to disk without blocking the event loop; default: the commit itself flushes. */
  writeAheadLog?: WriteAheadLog;
  /**
   * Called when a flush failed, so that it is unknown which commits are on disk, when the database was taken over, and after an
   * error outside of the units. All waiting units are rejected and no more are accepted; the process must exit, and the
   * next one reads the disk.
   */
  onLost?(error: unknown): void;
  /**
   * Called in each transaction before its first unit. Returns the error if another daemon has taken over the database: no
   * unit is run then or later, and `onLost` is called. What it throws is the result of the units of the transaction.
   */
  superseded?(): Error | null;
  /** Called when a checkpoint failed. Nothing is lost; it is tried again when the write-ahead log has grown. */
  onCheckpointFailed?(error: unknown): void;
  /** Called when readers still needed a part of the write-ahead log: it grows until a checkpoint finds no reader. */
  onCheckpointIncomplete?(): void;
  /** How long a unit waits for a lock that another process holds. */
  lockWaitMs?: number;
  /** Clock of the turns, monotonic ms. */
  now?(): number;
  /** Called with the messages that a commit has counted, when it is on disk. */
  onCounted?(counted: readonly CountedMessages[]): void;
  /** Called after each commit, for metrics. */
  observe?(commit: CommitTimes): void;
}

/** Times of one commit in ms: `transaction` blocks the event loop, `flush` does not. */
export interface CommitTimes {
  /** Time from the first unit of work to the end of COMMIT. */
  transaction: number;
  /** Time until the commit was on disk. */
  flush: number;
}

/** Units of work in one commit: bounds how long a unit waits for others. */
const MAX_GROUP_UNITS = 64;
/**
 * Units of work in one commit while several shares wait. Units of the delivery cost several times those that accept a
 * message when the database is large: in a smaller group, fewer of them run before the senders that wait for the commit
 * can continue.
 */
const MAX_SHARED_GROUP_UNITS = 36;
/**
 * After this time no further unit of a commit begins, because some units write megabytes. Where many units wait, time in
 * which the process did not run is not counted: groups shortened by it would cost many more commits.
 */
const MAX_GROUP_MS = 10;
/** What a share may use in a turn: several times the usual unit. */
const TURN_MS = 2;
/** Of one unit: it may have been interrupted, for example by the garbage collector. */
const MAX_MISSED_TURNS = 10;
/** The share of deliveries and the daemon itself, which misses no turn. */
const OWN_SHARE = '';
/** From this many waiting units on, the writer is crowded. */
const CROWDED_UNITS = 16;
const LOCK_TIMEOUT_MS = 5000;
/** Pauses between attempts to get the lock: doubled each time. */
const FIRST_RETRY_MS = 2;
const MAX_RETRY_MS = 100;

/**
 * Runs all writes. Units of work that arrive together share one commit (group commit), because a commit costs a disk
 * flush and a unit costs microseconds. Each unit runs in a savepoint, so that one that throws or returns a Refusal is
 * undone while the others of its group are committed. A unit's promise settles after the commit with its rows is on disk:
 * success means that they are durable. While one group is being flushed, the next one is collected.
 *
 * Another process may hold the write lock (a command, a backup tool). The writer then retries from timers, for
 * `lockWaitMs` per unit, and rejects with StoreUnavailable. With a busy timeout of 0 on the connection (see
 * `openDatabase`) the event loop is never blocked by a lock.
 *
 * Starts nothing: the first unit begins a group in the next turn of the event loop. No other code may begin a
 * transaction on `db`. Without `writeAheadLog` (a command) COMMIT flushes, and `checkpoint` resolves immediately.
 */
export function createWriter(db: Database, tables: Tables, options: WriterOptions = {}) {
  const sql = statements(db);
  const { writeAheadLog, lockWaitMs = LOCK_TIMEOUT_MS, now = () => performance.now() } = options;
  const begin = sql.run('BEGIN IMMEDIATE');
  const commit = sql.run('COMMIT');
  const rollback = sql.run('ROLLBACK');
  const savepoint = sql.run('SAVEPOINT unit');
  const release = sql.run('RELEASE unit');
  const undo = sql.run('ROLLBACK TO unit');
  const dataVersion = sql.value<[], number>('PRAGMA data_version');
  /** Waiting units of work by share. */
  const waiting = createFairQueue<Waiting>();
  /** Turns that a waiting share misses, because its last units took longer than a turn. */
  const missed = new Map<string, number>();
  const checkpointRequests: (() => void)[] = [];
  /** Tables whose counts are written with the commit. */
  const pendingCounts: readonly Pick<PendingCounts<unknown>, 'endUnit' | 'discard'>[] = [
    tables.hourlyCounts,
    tables.egressCounts,
    tables.campaignCounts,
    tables.reputationCounts,
    tables.tagCounts,
  ];
  let isInUnit = false;
  /** Of the unit that runs; null: it has none, as most. */
  let unitHooks: Hooks | null = null;
  let working: Promise<void> | null = null;
  let flushing: Promise<void> = Promise.resolve();
  let closed = false;

  /** An error that no unit of work has caused would leave the units waiting without end: the writer ends. */
  async function work(): Promise<void> {
    try {
      await runGroups();
    } catch (error) {
      working = null;
      lose(error);
    }
  }

  async function runGroups(): Promise<void> {
    let retry = FIRST_RETRY_MS;
    do {
      // Units that arrive in this turn of the event loop still join the group.
      await new Promise(setImmediate);
      const locked = beginGroup();
      if (locked !== null) {
        rejectOverdue(locked);
        await sleep(retry);
        retry = Math.min(2 * retry, MAX_RETRY_MS);
        continue;
      }
      retry = FIRST_RETRY_MS;
      const takenOver = db.inTransaction ? checkOwner() : null;
      if (takenOver !== null) {
        rollback();
        lose(takenOver);
        continue;
      }
      if (db.inTransaction) await flushGroup(commitGroup());
      if (writeAheadLog !== undefined && (writeAheadLog.isLong() || checkpointRequests.length > 0)) {
        await checkpoint(writeAheadLog);
      }
    } while (waiting.size > 0 || checkpointRequests.length > 0);
    // In the same turn: a unit that arrives later begins the next run.
    working = null;
  }

  /** The error if another daemon has taken over. When that cannot be read, one group is rejected. */
  function checkOwner(): Error | null {
    try {
      return options.superseded?.() ?? null;
    } catch (error) {
      // The error may have ended the transaction.
      if (db.inTransaction) rollback();
      for (const entry of takeUnits(MAX_GROUP_UNITS)) entry.reject(error);
      return null;
    }
  }

  /** Begins a transaction. Returns the error when another process holds the lock; any other error rejects one group. */
  function beginGroup(): unknown {
    try {
      begin();
      return null;
    } catch (error) {
      if (isBusy(error)) return error;
      for (const entry of takeUnits(MAX_GROUP_UNITS)) entry.reject(error);
      return null;
    }
  }

  /** Rejects the units that have waited for the lock for `lockWaitMs`; the others stay in the queue. */
  function rejectOverdue(locked: unknown): void {
    const overdue = performance.now() - lockWaitMs;
    const error = new StoreUnavailable(
      'busy',
      `another process has held the lock of the database for ${lockWaitMs / 1000} s`,
      { cause: locked },
    );
    for (const entry of waiting.drop(({ since }) => since <= overdue)) entry.reject(error);
    for (const name of missed.keys()) if (waiting.countOf(name) === 0) missed.delete(name);
  }

  /** Takes the next unit of the share whose turn it is; undefined when none waits. */
  function nextUnit(): { owner: string; item: Waiting } | undefined {
    for (;;) {
      const name = missed.size === 0 ? undefined : waiting.next();
      const turns = name === undefined ? undefined : missed.get(name);
      if (name === undefined || turns === undefined) return waiting.take();
      if (waiting.owners === 1) missed.delete(name);
      else {
        waiting.skip(name);
        setMissed(name, turns - 1);
      }
    }
  }

  function setMissed(name: string, turns: number): void {
    if (turns > 0) missed.set(name, turns);
    else missed.delete(name);
  }

  /** Charges a unit that took `ms` to its share, if more of its units wait. */
  function charge(name: string, ms: number): void {
    if (name === OWN_SHARE || waiting.countOf(name) === 0) return;
    setMissed(name, Math.min(Math.floor(ms / TURN_MS), MAX_MISSED_TURNS));
  }

  /** Whether many units wait: work that is not urgent should delay its next unit. */
  function isCrowded(): boolean {
    return waiting.size >= CROWDED_UNITS;
  }

  function takeUnits(max: number): Waiting[] {
    const units: Waiting[] = [];
    while (units.length < max) {
      const next = nextUnit();
      if (next === undefined) break;
      units.push(next.item);
    }
    return units;
  }

  /** Runs units in the open transaction and commits it. The caller calls `settle` of each once it is on disk. */
  function commitGroup(): Group {
    const units: RunUnit[] = [];
    const hooks: Hooks = new Map();
    const maxUnits = waiting.owners > 1 ? MAX_SHARED_GROUP_UNITS : MAX_GROUP_UNITS;
    const began = performance.now();
    const isOver = stopwatch(isCrowded() ? threadCpuMs : null);
    let current: Waiting | undefined;
    try {
      while (units.length < maxUnits && !isOver()) {
        const next = nextUnit();
        if (next === undefined) break;
        current = next.item;
        const unitBegan = now();
        units.push({ entry: current, settle: runUnit(current, hooks) });
        charge(next.owner, now() - unitBegan);
      }
      current = undefined;
      tables.contacts.mergeIndex();
      const counted = tables.hourlyCounts.write();
      tables.egressCounts.write();
      tables.campaignCounts.write();
      tables.reputationCounts.write();
      tables.tagCounts.write();
      commit();
      return { units, hooks, counted, ms: performance.now() - began };
    } catch (error) {
      if (db.inTransaction) rollback();
      for (const counts of pendingCounts) counts.discard();
      for (const { entry } of units) entry.reject(error);
      current?.reject(error);
      return { units: [], hooks: new Map(), counted: [], ms: 0 };
    }
  }

  async function flushGroup({ units, hooks, counted, ms }: Group): Promise<void> {
    if (units.length === 0) return;
    const began = performance.now();
    let flushMs = 0;
    try {
      if (writeAheadLog !== undefined) {
        flushing = writeAheadLog.flush();
        await flushing;
      }
      flushMs = performance.now() - began;
      for (const { settle } of units) settle();
    } catch (error) {
      for (const { entry } of units) entry.reject(error);
      lose(error);
      return;
    }
    // Runs before the callers of the units continue. An error here is not a failed flush.
    options.observe?.({ transaction: ms, flush: flushMs });
    if (counted.length > 0) options.onCounted?.(counted);
    for (const hook of hooks.values()) {
      try {
        hook();
      } catch (error) {
        // Not an error of the writer: it ends the process like any other that nothing handles.
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }

  /** Rejects the units that wait, ends requests for checkpoints, and accepts no more. */
  function lose(error: unknown): void {
    closed = true;
    for (const entry of takeUnits(Number.POSITIVE_INFINITY)) entry.reject(error);
    for (const resolve of checkpointRequests.splice(0)) resolve();
    options.onLost?.(error);
  }

  async function checkpoint(wal: WriteAheadLog): Promise<void> {
    const requests = checkpointRequests.splice(0);
    try {
      const { isComplete } = await wal.checkpoint();
      if (!isComplete) options.onCheckpointIncomplete?.();
    } catch (error) {
      options.onCheckpointFailed?.(error);
    } finally {
      for (const resolve of requests) resolve();
    }
  }

  /** Adds what the unit wants to be called after the commit to `hooks`. */
  function runUnit(entry: Waiting, hooks: Hooks): () => void {
    savepoint();
    isInUnit = true;
    try {
      const value = entry.unit(tables);
      const isRefused = isRefusal(value);
      if (isRefused) undo();
      release();
      for (const counts of pendingCounts) counts.endUnit(!isRefused);
      if (!isRefused) for (const [subject, hook] of unitHooks ?? []) hooks.set(subject, hook);
      return () => entry.resolve(value);
    } catch (error) {
      // A full disk may have ended the whole transaction: then the group fails, in commitGroup.
      if (!db.inTransaction) throw error;
      undo();
      release();
      for (const counts of pendingCounts) counts.endUnit(false);
      return () => entry.reject(error);
    } finally {
      isInUnit = false;
      unitHooks = null;
    }
  }

  /**
   * In a unit of work: calls `hook` when its rows are on disk, once for each `subject` of the commit; not if the unit is
   * undone. It must not throw. Outside of a unit it is called immediately.
   */
  function afterCommit(subject: unknown, hook: () => void): void {
    if (isInUnit) (unitHooks ??= new Map()).set(subject, hook);
    else hook();
  }

  return {
    /**
     * Runs `unit` in the next group. The unit is synchronous by type: a promise would outlive the transaction. Rejects with
     * the error that the unit threw, or with the commit's error. `share` names an account or other work (default:
     * deliveries and the daemon itself): where more units wait than fit into a group, shares take turns, and the units of one
     * share stay in order. A share whose unit took longer than a turn misses as many turns as it used.
     */
    run: <T>(unit: Unit<T>, name: string = OWN_SHARE): Promise<T> =>
      new Promise((resolve, reject) => {
        if (closed) {
          reject(new StoreUnavailable('closing', 'the database is closing'));
          return;
        }
        waiting.push(name, {
          unit,
          // Sound: it is called with the result of this unit only.
          resolve: resolve as (value: unknown) => void,
          reject,
          since: performance.now(),
        });
        working ??= work();
      }),
    /**
     * Resolves once everything readable so far is durable: immediately, unless a commit is being flushed. Callers that send
     * what they read to a client wait for it. Rejects when the flush fails.
     */
    durable: (): Promise<void> => flushing,
    afterCommit,
    isCrowded,
    /** A number that changes when another process, or another connection, commits. */
    versionOfOthers: (): number => dataVersion() ?? 0,
    /** Resolves after a checkpoint that began after the call; see `WriterOptions.onCheckpointIncomplete`. */
    checkpoint: (): Promise<void> =>
      new Promise((resolve) => {
        if (closed || writeAheadLog === undefined) return resolve();
        checkpointRequests.push(resolve);
        working ??= work();
      }),
    /** Commits the units that wait and rejects further ones. */
    close: async (): Promise<void> => {
      closed = true;
      await working;
    },
  };
}

export type Writer = ReturnType<typeof createWriter>;

/**
 * Returns a function that returns whether MAX_GROUP_MS have passed, by the clock and, with `cpuMs`, in CPU time of the
 * thread.
 */
function stopwatch(cpuMs: (() => number) | null): () => boolean {
  let end = performance.now() + MAX_GROUP_MS;
  if (cpuMs === null) return () => performance.now() >= end;
  const before = cpuMs();
  return () => {
    const now = performance.now();
    if (now < end) return false;
    const leftMs = before + MAX_GROUP_MS - cpuMs();
    // The thread cannot use the rest in less time.
    end = now + leftMs;
    return leftMs <= 0;
  };
}

/**
 * CPU time of the main thread in ms. Unlike `process.cpuUsage`, it does not include the other threads, and its cost does
 * not grow with their number. Null where the system does not count it (Linux: CONFIG_SCHED_INFO).
 */
const threadCpuMs: (() => number) | null = openStatistics();

function openStatistics(): (() => number) | null {
  const buffer = Buffer.alloc(64);
  try {
    // https://docs.kernel.org/scheduler/sched-stats.html: nanoseconds on a CPU, nanoseconds waiting, time slices.
    const file = openSync(`/proc/self/task/${process.pid}/schedstat`, 'r');
    const read = () => {
      const length = readSync(file, buffer, 0, buffer.length, 0);
      return Number.parseInt(buffer.toString('latin1', 0, length), 10) / 1e6;
    };
    return read() > 0 ? read : null;
  } catch {
    // Another system, or a process that may not read its own statistics: the caller uses the clock.
    return null;
  }
}

export interface CommitRetryOptions {
  /** Pause after the first failure, ms; doubled after each further one. */
  firstRetryMs: number;
  maxRetryMs: number;
  /** Called after each failure; `tries` counts from 1. */
  onError(error: unknown, tries: number): void;
  /** Aborted when the daemon stops: ends the pause in progress; further pauses take `firstRetryMs`. */
  hurry?: AbortSignal;
  /** No further try begins once it is aborted. */
  giveUp: AbortSignal;
  /** See `Writer.run`. */
  share?: string;
}

/**
 * Commits a unit of work that must not be lost: when it fails (a full disk, an unreadable table), it is repeated until
 * it is committed. Resolves with its result, or with null when `giveUp` was aborted.
 */
export async function commitWithRetries<T>(
  writer: Writer,
  unit: (tables: Tables) => T,
  options: CommitRetryOptions,
): Promise<{ result: T } | null> {
  const { firstRetryMs, maxRetryMs, onError, hurry, giveUp, share } = options;
  for (let tries = 1; !giveUp.aborted; tries++) {
    try {
      // A unit's type forbids promises, which TypeScript cannot check for a type parameter.
      return { result: (await writer.run(unit as (tables: Tables) => never, share)) as T };
    } catch (error) {
      onError(error, tries);
    }
    const isHurried = hurry?.aborted === true;
    const pauseMs = isHurried ? firstRetryMs : Math.min(firstRetryMs * 2 ** (tries - 1), maxRetryMs);
    await pause(pauseMs, isHurried || hurry === undefined ? [giveUp] : [giveUp, hurry]);
  }
  return null;
}

/** Ends early when one of the signals is aborted. */
function pause(ms: number, signals: readonly AbortSignal[]): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      for (const signal of signals) signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    for (const signal of signals) {
      signal.addEventListener('abort', done);
      if (signal.aborted) done();
    }
  });
}

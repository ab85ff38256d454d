import { isRefusal } from '../core/refusal.ts';
import type { Database } from './database.ts';
import type { Tables } from './tables.ts';
import type { WriteAheadLog } from './write-ahead-log.ts';

/**
 * The one way to write: units of work that arrive together share one commit (group commit), because a commit
 * costs a disk flush and a unit costs microseconds. Each unit runs in a savepoint of its own, so that one
 * that throws, or returns a Refusal, leaves no trace while its neighbours stand. A unit's promise settles
 * after the commit that holds its rows is on disk: an answer of success means it is stored. While one group is
 * on its way to the disk, the next one gathers.
 */
export interface Writer {
  /**
   * Runs `unit` in the next group. The unit is synchronous by type: a promise inside a transaction would
   * outlive it. Rejects with what the unit threw, or with the commit's error.
   */
  run<T>(unit: Unit<T>): Promise<T>;
  /**
   * What a plain read shows by now is on disk: for who tells it to somebody else, to whom it must never be
   * untrue. At once, unless a commit is on its way there. Rejects when the disk does not take it.
   */
  settled(): Promise<void>;
  /** Commits what waits and refuses what comes after. */
  close(): Promise<void>;
}

export type Unit<T> = (tables: Tables) => T extends PromiseLike<unknown> ? never : T;

interface Waiting {
  unit: (tables: Tables) => unknown;
  resolve: (value: unknown) => void;
  reject: (error: unknown) => void;
}

export interface WriterOptions {
  /** Who flushes a commit to disk without holding up the event loop; left out: the commit itself does. */
  log: WriteAheadLog;
  /**
   * The disk did not take the log: what is in the file and what is only in memory cannot be told apart any more.
   * All who wait are told, nothing is taken from here on; the process is to end, and the next one reads the disk.
   */
  onLost(error: unknown): void;
}

/** Units in one commit at most: bounds how long a group holds the event loop. */
const GROUP = 256;
/**
 * No further unit begins after so long, as some write megabytes: the rest goes into the next commit. Time in which
 * the process did not run at all does not count.
 */
const GROUP_MS = 10;

export function createWriter(db: Database, tables: Tables, options?: WriterOptions): Writer {
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
    do {
      // Whoever comes in this turn of the event loop is still of the group.
      await new Promise(setImmediate);
      const group = waiting.slice(0, GROUP);
      waiting = waiting.slice(GROUP);
      const settled = commitGroup(group);
      try {
        if (options !== undefined && settled.length > 0) {
          flushing = options.log.flush();
          await flushing;
        }
        for (const settle of settled) settle();
      } catch (error) {
        closed = true;
        for (const entry of [...group, ...waiting.splice(0)]) entry.reject(error);
        options?.onLost(error);
      }
    } while (waiting.length > 0);
    working = null;
  }

  /** What is to be said to each once it is on disk; nothing when the commit failed, which they know then. */
  function commitGroup(group: Waiting[]): (() => void)[] {
    try {
      begin.run();
      const settled: (() => void)[] = [];
      const isOver = stopwatch();
      for (const [index, entry] of group.entries()) {
        settled.push(runUnit(entry));
        if (isOver()) waiting.unshift(...group.splice(index + 1));
      }
      commit.run();
      return settled;
    } catch (error) {
      if (db.inTransaction) rollback.run();
      for (const entry of group) entry.reject(error);
      return [];
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
          reject(new Error('the database is closing'));
          return;
        }
        waiting.push({ unit, resolve: resolve as (value: unknown) => void, reject });
        working ??= work();
      }),
    settled: () => flushing,
    close: async () => {
      closed = true;
      await working;
    },
  };
}

/** Says whether GROUP_MS have passed, by the clock and in CPU time of the process. */
function stopwatch(): () => boolean {
  const end = performance.now() + GROUP_MS;
  const before = process.cpuUsage();
  return () => {
    if (performance.now() < end) return false;
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000 >= GROUP_MS;
  };
}

import { isRefusal } from '../core/refusal.ts';
import type { Database } from './database.ts';
import type { Tables } from './tables.ts';

/**
 * The one way to write: units of work that arrive together share one commit (group commit), because a commit
 * costs a disk flush and a unit costs microseconds. Each unit runs in a savepoint of its own, so that one
 * that throws, or returns a Refusal, leaves no trace while its neighbours stand. A unit's promise settles
 * after the commit that holds its rows is on disk: an answer of success means it is stored.
 */
export interface Writer {
  /**
   * Runs `unit` in the next group. The unit is synchronous by type: a promise inside a transaction would
   * outlive it. Rejects with what the unit threw, or with the commit's error.
   */
  run<T>(unit: Unit<T>): Promise<T>;
  /** Commits what waits and refuses what comes after. */
  close(): Promise<void>;
}

export type Unit<T> = (tables: Tables) => T extends PromiseLike<unknown> ? never : T;

interface Waiting {
  unit: (tables: Tables) => unknown;
  resolve: (value: unknown) => void;
  reject: (error: unknown) => void;
}

/** Units in one commit at most: bounds how long a group holds the event loop. */
const GROUP = 256;

export function createWriter(db: Database, tables: Tables): Writer {
  const begin = db.prepare('BEGIN IMMEDIATE');
  const commit = db.prepare('COMMIT');
  const rollback = db.prepare('ROLLBACK');
  const savepoint = db.prepare('SAVEPOINT unit');
  const release = db.prepare('RELEASE unit');
  const undo = db.prepare('ROLLBACK TO unit');
  let waiting: Waiting[] = [];
  let scheduled = false;
  let closed = false;

  function schedule(): void {
    if (scheduled || waiting.length === 0) return;
    scheduled = true;
    setImmediate(flush);
  }

  function flush(): void {
    scheduled = false;
    const group = waiting.slice(0, GROUP);
    waiting = waiting.slice(GROUP);
    const settled: (() => void)[] = [];
    try {
      begin.run();
      for (const entry of group) settled.push(runUnit(entry));
      commit.run();
    } catch (error) {
      if (db.inTransaction) rollback.run();
      for (const entry of group) entry.reject(error);
      settled.length = 0;
    }
    for (const settle of settled) settle();
    schedule();
  }

  function runUnit(entry: Waiting): () => void {
    savepoint.run();
    try {
      const value = entry.unit(tables);
      if (isRefusal(value)) undo.run();
      release.run();
      return () => entry.resolve(value);
    } catch (error) {
      // A full disk may have ended the whole transaction already: then the group fails, in flush.
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
        schedule();
      }),
    close: async () => {
      closed = true;
      while (waiting.length > 0) flush();
    },
  };
}

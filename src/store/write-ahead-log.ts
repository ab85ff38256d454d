import { closeSync, openSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import type { Database } from './database.ts';
import { StoreUnavailable } from './failure.ts';
import type { LogRequest, LogResult, LogThreadData } from './flush-thread.ts';

/**
 * Flushes the database's write-ahead log without blocking the event loop. With `synchronous = FULL` SQLite waits
 * for the disk inside each COMMIT, a millisecond or more in which nothing else runs. With `synchronous = NORMAL`
 * it leaves that flush to us, and goes on flushing log and file around each checkpoint, so that the file is
 * consistent at any moment (https://sqlite.org/wal.html, "Performance Considerations"). A commit is on disk when
 * the `flush` that began after it has ended.
 *
 * The flush runs in a thread of its own. In libuv's pool, which has four threads for everything, it would wait
 * behind key generation, file access and whatever else is queued there. The same thread runs the checkpoints, which
 * SQLite would otherwise run inside a COMMIT, with two flushes and thousands of page copies on the event loop.
 */
export interface WriteAheadLog {
  /** Rejects when the disk reports an error, or when it is unknown whether it took the log. One at a time. */
  flush(): Promise<void>;
  /** Whether the last flush found the log so long that a checkpoint is due. */
  isLong(): boolean;
  /**
   * Copies the log into the database, so that SQLite begins it anew. Nothing may be committed meanwhile: a log that
   * grows during each checkpoint would never begin anew. `isComplete` is false when a reader still needs a part of the log:
   * then it does not begin anew. Rejects when that failed; the log is then as before.
   */
  checkpoint(): Promise<{ isComplete: boolean }>;
  /** Must be called before the database is closed. */
  close(): Promise<void>;
}

export interface WriteAheadLogOptions {
  /** The program of the flush thread; default: the compiled one beside this file. */
  script?: URL | undefined;
}

type LogSuccess = Exclude<LogResult, { kind: 'failed' }>;

/** The thread allocates next to nothing of JavaScript's. */
const THREAD_LIMITS = { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 2 };

/** For the connection that writes; the log exists as long as any connection is open. */
export function openWriteAheadLog(db: Database, options: WriteAheadLogOptions = {}): WriteAheadLog {
  db.exec('PRAGMA synchronous = NORMAL');
  db.exec('PRAGMA wal_autocheckpoint = 0');
  // SQLite's POSIX locks are on the other two files: closing this descriptor drops none of them.
  const fd = openSync(`${db.name}-wal`, 'r');
  const thread = new Worker(options.script ?? new URL('./flush-thread.js', import.meta.url), {
    workerData: { fd, file: db.name } satisfies LogThreadData,
    resourceLimits: THREAD_LIMITS,
  });
  let pending: { request: LogRequest; resolve(result: LogSuccess): void; reject(error: Error): void } | null =
    null;
  let isLong = false;
  /** Once set, every flush rejects: nothing says what the thread's last flush did. */
  let broken: Error | null = null;

  function breakDown(error: Error): void {
    broken ??= error;
    pending?.reject(broken);
    pending = null;
  }

  thread.on('message', (result: LogResult) => {
    const asked = pending;
    if (result.kind === 'failed') {
      const error = Object.assign(new Error(result.message), { code: result.code });
      if (asked?.request !== 'checkpoint') {
        breakDown(error);
        return;
      }
      pending = null;
      isLong = false;
      asked.reject(error);
      return;
    }
    isLong = result.kind === 'flushed' && result.isLong;
    pending = null;
    asked?.resolve(result);
  });
  thread.on('error', (error) => {
    breakDown(new StoreUnavailable('lost', 'the WAL flush thread failed', { cause: error }));
  });
  thread.on('exit', (code) => {
    breakDown(new StoreUnavailable('lost', `the WAL flush thread ended with code ${code}`));
  });

  function ask(request: LogRequest): Promise<LogSuccess> {
    return new Promise((resolve, reject) => {
      if (broken !== null) return reject(broken);
      if (pending !== null) return reject(new Error(`a WAL ${pending.request} is under way already`));
      pending = { request, resolve, reject };
      thread.postMessage(request);
    });
  }

  return {
    flush: async () => {
      await ask('flush');
    },
    isLong: () => isLong,
    checkpoint: async () => {
      const result = await ask('checkpoint');
      return { isComplete: result.kind === 'checkpointed' && result.isComplete };
    },
    close: async () => {
      broken ??= new StoreUnavailable('closing', 'the write-ahead log is closed');
      await thread.terminate();
      closeSync(fd);
    },
  };
}

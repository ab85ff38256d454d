import { closeSync, openSync, realpathSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { builtProgram } from '../../core/built-program.ts';
import type { Database } from './database.ts';
import { StoreUnavailable } from './failure.ts';
import type { LogRequest, LogResult, LogThreadData } from './flush-thread.ts';

export interface WriteAheadLogOptions {
  /** The program of the threads; default: the compiled one in this directory. */
  script?: URL | undefined;
}

/** The threads allocate little memory in JavaScript. */
const THREAD_LIMITS = { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 2 };
/** Frames, of a page each, at which a checkpoint is due: 16 MB. */
export const MAX_FRAMES = 4000;

/**
 * Flushes the database's write-ahead log without blocking the event loop. With `synchronous = FULL` SQLite waits
 * for the disk inside each COMMIT, a millisecond or more in which nothing else runs. With `synchronous = NORMAL`
 * it leaves that flush to the caller, and still flushes log and file around each checkpoint, so that the file is
 * consistent at any moment (https://sqlite.org/wal.html, "Performance Considerations"). A commit is on disk when
 * the `flush` that began after it has ended.
 *
 * The flush runs in a separate thread. In libuv's pool of four threads it would wait behind key generation, file access
 * and other work. Checkpoints run in a second thread; SQLite would otherwise run them inside a COMMIT, with two flushes
 * and thousands of page copies on the event loop.
 *
 * A checkpoint has two parts. The first copies the log while commits continue, which takes as long as the disk needs for
 * pages all over the file. The second copies the frames that were committed meanwhile and requires a pause of the writer,
 * because a log that grows during each checkpoint would never restart. The pause is short, as little is left to copy.
 *
 * One flush remains inside COMMIT: SQLite flushes the header of a log that restarts, so that older frames are not mistaken
 * for new ones after a power failure. On a busy disk that flush takes as long as any other. Therefore a checkpoint is due
 * at MAX_FRAMES, not at SQLite's 1000 pages.
 *
 * Opens the log of the connection that writes. It exists as long as any connection is open.
 */
export function openWriteAheadLog(db: Database, options: WriteAheadLogOptions = {}) {
  db.exec('PRAGMA synchronous = NORMAL');
  db.exec('PRAGMA wal_autocheckpoint = 0');
  // SQLite's POSIX locks are on the other two files: closing this descriptor drops none of them. The log is named after the
  // target of a symbolic link.
  const fd = openSync(`${realpathSync(db.name)}-wal`, 'r');
  const data: LogThreadData = { fd, file: db.name };
  const script = options.script ?? builtProgram('store/database/flush-thread');
  const flusher = startThread(script, data, 'the WAL flush thread');
  /** Null: not started yet. Nothing is lost when it ends unexpectedly: the next checkpoint starts another one. */
  let copier: LogThread | null = null;
  /** Frames in the log at which the next checkpoint is due. */
  let dueAt = MAX_FRAMES;
  /** The first part of a checkpoint, running or done; null: none is due. */
  let firstPart: { isDone: boolean; error: Error | null; ended: Promise<void> } | null = null;

  /** Whether the log has doubled during the first part: the disk is too slow, and commits wait for the checkpoint. */
  let isOverdue = false;

  function requestCopy(request: LogRequest): Promise<LogResult> {
    if (copier === null || copier.isBroken()) copier = startThread(script, data, 'the WAL checkpoint thread');
    return copier.request(request);
  }

  function beginCheckpoint(): void {
    const part = { isDone: false, error: null as Error | null, ended: Promise.resolve() };
    part.ended = requestCopy({ kind: 'checkpoint' }).then(
      () => void (part.isDone = true),
      (error: Error) => {
        part.isDone = true;
        part.error = error;
      },
    );
    firstPart = part;
  }

  async function finishCheckpoint(): Promise<{ isComplete: boolean }> {
    const part = firstPart;
    await part?.ended;
    firstPart = null;
    isOverdue = false;
    // A failed checkpoint is not repeated before the log has grown.
    const failedAt = dueAt;
    dueAt += MAX_FRAMES;
    if (part?.error) throw part.error;
    const result = await requestCopy({ kind: 'checkpoint' });
    if (result.kind !== 'checkpointed' || result.frames < 0) return { isComplete: true };
    const isComplete = result.copied >= result.frames;
    dueAt = isComplete ? MAX_FRAMES : Math.max(failedAt, result.frames) + MAX_FRAMES;
    return { isComplete };
  }

  return {
    /** Rejects when the disk reports an error, or when it is unknown whether the log is on disk. One at a time. */
    flush: async (): Promise<void> => {
      const isCopying = firstPart !== null;
      const result = await flusher.request({ kind: 'flush', dueAt: isCopying ? dueAt + MAX_FRAMES : dueAt });
      if (result.kind !== 'flushed' || !result.isLong) return;
      if (isCopying) isOverdue = true;
      else beginCheckpoint();
    },
    /** Whether the second part of a checkpoint is due: the caller pauses and calls `checkpoint`. */
    isLong: (): boolean => firstPart?.isDone === true || isOverdue,
    /**
     * Copies the log into the database, so that SQLite restarts it. Nothing may be committed meanwhile. `isComplete` is
     * false when a reader still needs a part of the log: it then does not restart. Rejects when this part or the first one
     * failed; the log is then unchanged.
     */
    checkpoint: finishCheckpoint,
    /** Must be called before the database is closed. */
    close: async (): Promise<void> => {
      await Promise.all([flusher.close(), copier?.close()]);
      closeSync(fd);
    },
  };
}

export type WriteAheadLog = ReturnType<typeof openWriteAheadLog>;

interface LogThread {
  /** One request at a time. Rejects when it fails, and always after the thread has ended or a flush has failed. */
  request(request: LogRequest): Promise<LogResult>;
  isBroken(): boolean;
  close(): Promise<void>;
}

function startThread(script: URL, data: LogThreadData, name: string): LogThread {
  const thread = new Worker(script, { workerData: data, resourceLimits: THREAD_LIMITS });
  let pending: { request: LogRequest; resolve(result: LogResult): void; reject(error: Error): void } | null =
    null;
  /** Not null: every request rejects with it, because the result of the last flush is unknown. */
  let broken: Error | null = null;

  function fail(error: Error): void {
    broken ??= error;
    pending?.reject(broken);
    pending = null;
  }

  thread.on('message', (result: LogResult) => {
    const answered = pending;
    if (result.kind !== 'failed') {
      pending = null;
      answered?.resolve(result);
      return;
    }
    const error = Object.assign(new Error(result.message), { code: result.code });
    if (answered === null || answered.request.kind === 'flush') {
      fail(error);
      return;
    }
    pending = null;
    answered.reject(error);
  });
  thread.on('error', (error) => {
    fail(new StoreUnavailable('lost', `${name} failed`, { cause: error }));
  });
  thread.on('exit', (code) => {
    fail(new StoreUnavailable('lost', `${name} ended with code ${code}`));
  });
  return {
    request: (request) =>
      new Promise((resolve, reject) => {
        if (broken !== null) return reject(broken);
        if (pending !== null) return reject(new Error(`a WAL ${pending.request.kind} is in progress`));
        pending = { request, resolve, reject };
        thread.postMessage(request);
      }),
    isBroken: () => broken !== null,
    close: async () => {
      broken ??= new StoreUnavailable('closing', 'the write-ahead log is closed');
      await thread.terminate();
    },
  };
}

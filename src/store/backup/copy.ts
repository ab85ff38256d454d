import { Worker } from 'node:worker_threads';
import { builtProgram } from '../../core/built-program.ts';
import { StoreFault } from '../database/failure.ts';
import type { DatabaseContent } from './content.ts';

export interface CopierOptions {
  /** Maximum rate of reads. */
  bytesPerSecond: number;
  /** Called about ten times per second. */
  onProgress?(kind: TaskKind, progress: TaskProgress): void;
  /** Ends the task in progress, which is then rejected with the reason of the signal. */
  signal?: AbortSignal | undefined;
  /** The programs of the threads; default: the compiled ones in this directory. */
  programs?: CopyPrograms | undefined;
}

export interface CopyPrograms {
  copy: URL;
  check: URL;
}

export interface TaskProgress {
  /** Bytes. */
  done: number;
  total: number;
  /** Bytes by which the write-ahead log has grown during a copy. */
  logGrowth: number;
}

export type Task = CopyTask | CheckTask;
export type TaskKind = Task['kind'];

export interface CopyTask {
  kind: 'copy';
  file: string;
  to: string;
  maxLogBytes: number;
}

export interface CheckTask {
  kind: 'seal' | 'check' | 'hash';
  file: string;
}

export interface ThreadData {
  bytesPerSecond: number;
  /** Not 0: the thread stops at its next step. */
  stop: Int32Array;
}

export type TaskResult =
  | { kind: 'copied' }
  | { kind: 'content'; content: DatabaseContent }
  | { kind: 'hashed'; sha256: string };

export type TaskMessage =
  | { kind: 'progress'; progress: TaskProgress }
  | TaskResult
  | { kind: 'stopped' }
  | { kind: 'failed'; message: string; code: string | undefined };

/**
 * Long work on whole files, in threads with a low priority: the calling thread is never blocked. A database in use is
 * read through an SQLite connection only: closing a plain descriptor would release the locks that SQLite has on the file
 * in this process.
 *
 * Starts no thread yet: each copy has one until it ends, and the other tasks share one until `close`, so they must not
 * overlap. Once `signal` is aborted every task rejects. A damaged database is a StoreFault.
 */
export function createCopier(options: CopierOptions) {
  const programs = options.programs ?? {
    copy: builtProgram('store/backup/copy-thread'),
    check: builtProgram('store/backup/check-thread'),
  };
  const { bytesPerSecond } = options;
  const stop = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  /** Started with the first task that needs it, and again if it has ended. */
  let checker: Worker | null = null;

  function start(program: URL): Worker {
    const thread = new Worker(program, {
      workerData: { bytesPerSecond, stop } satisfies ThreadData,
      resourceLimits: { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 8 },
    });
    // A task in progress rejects with it. A thread that fails between two tasks is replaced.
    thread.on('error', () => {});
    return thread;
  }

  async function run(thread: Worker, task: Task): Promise<TaskResult> {
    const { onProgress, signal } = options;
    signal?.throwIfAborted();
    const onAbort = () => {
      Atomics.store(stop, 0, 1);
      Atomics.notify(stop, 0);
    };
    signal?.addEventListener('abort', onAbort);
    const listeners = new AbortController();
    try {
      return await new Promise<TaskResult>((resolve, reject) => {
        const onMessage = (message: TaskMessage) => {
          if (message.kind === 'progress') onProgress?.(task.kind, message.progress);
          else if (message.kind === 'failed') reject(failureOf(task, message));
          else if (message.kind === 'stopped') reject(stopReason(signal));
          else resolve(message);
        };
        const onExit = (code: number) =>
          reject(new Error(`the thread of a ${task.kind} ended with code ${code}`));
        thread.on('message', onMessage).on('error', reject).on('exit', onExit);
        listeners.signal.addEventListener('abort', () => {
          thread.off('message', onMessage).off('error', reject).off('exit', onExit);
        });
        thread.postMessage(task);
      });
    } finally {
      listeners.abort();
      signal?.removeEventListener('abort', onAbort);
    }
  }

  async function check(kind: CheckTask['kind'], file: string): Promise<TaskResult> {
    const thread = checker ?? start(programs.check);
    if (checker === null) {
      checker = thread;
      thread.once('exit', () => {
        checker = null;
      });
    }
    return run(thread, { kind, file });
  }

  const content = async (kind: 'seal' | 'check', file: string) => {
    const result = await check(kind, file);
    if (result.kind !== 'content') throw new Error(`the thread answered ${result.kind}`);
    return result.content;
  };
  return {
    /** Copies the state of a database that may be in use. `to` must not exist; it is removed when the copy fails. */
    copy: async (file: string, to: string, { maxLogBytes }: { maxLogBytes: number }): Promise<void> => {
      const thread = start(programs.copy);
      try {
        await run(thread, { kind: 'copy', file, to, maxLogBytes });
      } finally {
        await thread.terminate();
      }
    },
    /** Completes a copy: one file without a write-ahead log, marked so that no daemon starts on it. */
    seal: (file: string): Promise<DatabaseContent> => content('seal', file),
    /** Reads the content of a database that no process uses, and checks its integrity. */
    check: (file: string): Promise<DatabaseContent> => content('check', file),
    /** SHA-256, in hexadecimal, of a file that is not a database in use. */
    hash: async (file: string): Promise<string> => {
      const result = await check('hash', file);
      if (result.kind !== 'hashed') throw new Error(`the thread answered ${result.kind}`);
      return result.sha256;
    },
    /** Ends the threads. */
    close: async (): Promise<void> => {
      await checker?.terminate();
    },
  };
}

export type Copier = ReturnType<typeof createCopier>;

function stopReason(signal: AbortSignal | undefined): Error {
  return signal?.reason instanceof Error ? signal.reason : new DOMException('stopped', 'AbortError');
}

function failureOf(
  { file }: { file: string },
  { message, code }: { message: string; code: string | undefined },
): Error {
  if (code === 'SQLITE_NOTADB' || code === 'SQLITE_CORRUPT')
    return new StoreFault(`${file} is damaged: ${code}: ${message}`);
  return Object.assign(new Error(message), code === undefined ? {} : { code });
}

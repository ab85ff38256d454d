import type { Worker } from 'node:worker_threads';
import type { Log } from '../../core/log.ts';
import { ReadRejected } from '../database/failure.ts';
import { createReadQueue } from './queue.ts';
import { type Reader, tableReadName } from './reads.ts';
import type { ReadReply, ReadRequest } from './thread.ts';

/**
 * Reader threads: each has a read-only connection and runs one read at a time, within a time budget. Reads that wait for a
 * thread are bounded and run in turns between accounts (`queue.ts`). A thread that ends is replaced; the read that it ran
 * is rejected and not repeated, as it may have ended the thread.
 *
 * Reads that are requested after a commit of the writer see it. It may not be on disk yet: callers that send what they
 * read to a client wait for `writer.durable()`.
 */
export interface ReaderPool extends Reader {
  /**
   * Starts no further read until `resume` is called. Resolves when no read runs, so that none blocks a checkpoint, or when
   * a read has not ended `overdueMs` after its budget.
   */
  pause(): Promise<{ resume(): void }>;
  /** Rejects the reads that wait, waits for those in progress, and closes the connections. */
  close(): Promise<void>;
  state(): ReaderPoolState;
}

export interface ReaderPoolState {
  /** Reads that wait for a thread. */
  waiting: number;
  /** Threads that run a read, and all that are ready for one. */
  busy: number;
  threads: number;
}

export type ReadOutcome = 'done' | 'failed' | ReadRejected['reason'];

export interface ReaderPoolOptions {
  threads: number;
  /** The time budget of a read in ms; read at each use: a reload changes it. */
  readonly budgetMs: number;
  startThread(): Worker;
  log: Log;
  /** Called once for each read; `ms` is its time in a thread, 0 when it had none. */
  observe?(read: string, outcome: ReadOutcome, ms: number): void;
  /** Resolves at the account's turn on the event loop; awaited before a result is returned. */
  turn?(accountId: string): Promise<void>;
  limits?: Partial<ReaderPoolLimits>;
}

export interface ReaderPoolLimits {
  maxWaiting: number;
  maxWaitingPerAccount: number;
  /** How long a read waits for a thread, ms. */
  maxWaitMs: number;
  /** Time after its budget at which a read without a result is rejected, ms. */
  overdueMs: number;
  firstRestartMs: number;
  maxRestartMs: number;
}

const LIMITS: ReaderPoolLimits = {
  maxWaiting: 1024,
  maxWaitingPerAccount: 128,
  maxWaitMs: 10_000,
  overdueMs: 1000,
  firstRestartMs: 100,
  maxRestartMs: 30_000,
};

interface Job {
  accountId: string;
  name: string;
  args: readonly unknown[];
  resolve(value: unknown): void;
  reject(error: Error): void;
  /** While it waits: until it is rejected. While it runs: until it is overdue. */
  timer: NodeJS.Timeout | undefined;
  /** Whether it was rejected while it ran. */
  isOverdue: boolean;
}

/** A reader thread as the pool sees it; the thread is replaced when it ends. */
interface ReaderHandle {
  /** Null between the end of a thread and the start of the next. */
  thread: Worker | null;
  isReady: boolean;
  job: Job | null;
  restartMs: number;
}

/**
 * Starts all threads now. By default a read waits for 10 s at most, with 1024 others, 128 of its account. A thread that
 * ended is replaced after 100 ms, then after twice as long each time, up to 30 s.
 */
export function createReaderPool(options: ReaderPoolOptions): ReaderPool {
  const { threads, log, observe = () => {}, turn } = options;
  const limits = { ...LIMITS, ...options.limits };
  const queue = createReadQueue<Job>({ ...limits, threads });
  const handles: ReaderHandle[] = Array.from({ length: threads }, () => ({
    thread: null,
    isReady: false,
    job: null,
    restartMs: limits.firstRestartMs,
  }));
  let pauses = 0;
  let closed = false;
  /** Called when no read runs. */
  let onIdle: (() => void)[] = [];

  const isIdle = ({ isReady, job }: ReaderHandle) => isReady && job === null;
  const isBusy = ({ job }: ReaderHandle) => job !== null;

  function start(handle: ReaderHandle): void {
    if (closed) return;
    const thread = options.startThread();
    handle.thread = thread;
    thread.on('message', (reply: ReadReply) => {
      if (handle.thread === thread) receive(handle, reply);
    });
    thread.on('error', (error) => log.error({ err: error }, 'reader thread failed'));
    thread.on('exit', (code) => {
      if (handle.thread === thread) lost(handle, code);
    });
  }

  function receive(handle: ReaderHandle, reply: ReadReply): void {
    if (reply.kind === 'ready') {
      handle.isReady = true;
    } else {
      handle.restartMs = limits.firstRestartMs;
      const job = release(handle);
      if (job?.isOverdue === false) settle(job, reply);
    }
    dispatch();
  }

  /** Ends the read of a thread and returns it; null when the thread ran none. */
  function release(handle: ReaderHandle): Job | null {
    const { job } = handle;
    if (job === null) return null;
    handle.job = null;
    clearTimeout(job.timer);
    queue.ended(job);
    if (!handles.some(isBusy)) for (const callback of onIdle.splice(0)) callback();
    return job;
  }

  function settle(job: Job, reply: Exclude<ReadReply, { kind: 'ready' }>): void {
    if (reply.kind === 'too-broad') return reject(job, tooBroad(), reply.ms);
    observe(job.name, reply.kind === 'result' ? 'done' : 'failed', reply.ms);
    if (reply.kind === 'result') return job.resolve(reply.value);
    const error = new Error(reply.message);
    if (reply.stack !== undefined) error.stack = reply.stack;
    job.reject(reply.code === undefined ? error : Object.assign(error, { code: reply.code }));
  }

  function reject(job: Job, error: ReadRejected, ms = 0): void {
    clearTimeout(job.timer);
    observe(job.name, error.reason, ms);
    job.reject(error);
  }

  function tooBroad(): ReadRejected {
    return new ReadRejected(
      'too-broad',
      `the query exceeded its time budget of ${options.budgetMs / 1000} s`,
    );
  }

  function lost(handle: ReaderHandle, code: number): void {
    handle.thread = null;
    handle.isReady = false;
    const job = release(handle);
    if (job?.isOverdue === false) reject(job, interrupted());
    if (closed) return;
    const { restartMs } = handle;
    log.error({ code, read: job?.name, restartMs }, 'reader thread ended; starting another one');
    handle.restartMs = Math.min(2 * restartMs, limits.maxRestartMs);
    setTimeout(start, restartMs, handle).unref();
    if (handles.every(({ thread }) => thread === null))
      for (const waiting of queue.clear()) reject(waiting, interrupted());
    dispatch();
  }

  function idleOrOverdue(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, options.budgetMs + limits.overdueMs);
      onIdle.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  function interrupted(): ReadRejected {
    return new ReadRejected('lost', 'the query was interrupted by a fault of the service');
  }

  function dispatch(): void {
    if (pauses > 0) return;
    for (;;) {
      const idle = handles.filter(isIdle);
      const [handle] = idle;
      const job = queue.take(idle.length);
      if (handle === undefined || job === undefined) return;
      clearTimeout(job.timer);
      handle.job = job;
      job.timer = setTimeout(overdue, options.budgetMs + limits.overdueMs, job);
      handle.thread?.postMessage({
        name: job.name,
        args: job.args,
        budgetMs: options.budgetMs,
      } satisfies ReadRequest);
    }
  }

  /**
   * Rejects a read that still runs. A statement without a condition is not bounded by the budget and cannot be ended from
   * outside; its thread is available again when the statement has ended.
   */
  function overdue(job: Job): void {
    log.warn({ read: job.name, accountId: job.accountId }, 'read exceeded its time budget and still runs');
    job.isOverdue = true;
    reject(job, tooBroad(), options.budgetMs + limits.overdueMs);
  }

  function request(accountId: string, name: string, args: readonly unknown[]): Promise<unknown> {
    return new Promise((resolve, rejectRead) => {
      const job: Job = {
        accountId,
        name,
        args,
        resolve,
        reject: rejectRead,
        timer: undefined,
        isOverdue: false,
      };
      if (closed) return reject(job, new ReadRejected('closing', 'the service is shutting down'));
      if (handles.every(({ thread }) => thread === null)) return reject(job, interrupted());
      const rejected = queue.push(job);
      if (rejected !== null) reject(rejected, crowded());
      if (rejected === job) return;
      job.timer = setTimeout(expire, limits.maxWaitMs, job);
      dispatch();
    });
  }

  function expire(job: Job): void {
    if (queue.remove(job)) reject(job, crowded());
  }

  function crowded(): ReadRejected {
    return new ReadRejected('busy', 'too many queries are waiting');
  }

  async function read(accountId: string, name: string, args: readonly unknown[]): Promise<unknown> {
    const value = await request(accountId, name, args);
    await turn?.(accountId);
    return value;
  }

  for (const handle of handles) start(handle);
  return {
    // Sound: the thread calls exactly this method with these arguments, and its result is plain data.
    table: (accountId, table, method, ...args) =>
      read(accountId, tableReadName(table, method), args) as Promise<never>,
    // Sound for the same reason.
    query: (accountId, { name }, ...args) => read(accountId, name, args) as Promise<never>,
    pause: async () => {
      pauses++;
      if (handles.some(isBusy)) await idleOrOverdue();
      let isResumed = false;
      return {
        resume: () => {
          if (isResumed) return;
          isResumed = true;
          pauses--;
          dispatch();
        },
      };
    },
    close: async () => {
      closed = true;
      for (const job of queue.clear())
        reject(job, new ReadRejected('closing', 'the service is shutting down'));
      await Promise.all(handles.map(closeHandle));
    },
    state: () => ({
      waiting: queue.size,
      busy: handles.filter(isBusy).length,
      threads: handles.filter(({ isReady }) => isReady).length,
    }),
  };

  async function closeHandle({ thread }: ReaderHandle): Promise<void> {
    if (thread === null) return;
    const ended = new Promise((resolve) => thread.once('exit', resolve));
    thread.postMessage('close' satisfies ReadRequest);
    // The thread closes after the read in progress.
    const timer = setTimeout(() => void thread.terminate(), options.budgetMs + limits.overdueMs);
    await ended;
    clearTimeout(timer);
  }
}

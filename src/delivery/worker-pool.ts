import { Worker } from 'node:worker_threads';
import { MINUTE, SECOND } from '../core/clock.ts';
import { withTimeout } from '../core/concurrency/with-timeout.ts';
import type { Runtime } from '../core/runtime.ts';
import {
  type AttemptReport,
  type DeliveryJob,
  type FromWorker,
  JOB_CLASSES,
  jobClassOf,
  type ToWorker,
  type WorkerSetup,
} from './worker/protocol.ts';

export type WorkerPool = ReturnType<typeof createWorkerPool>;

/** How a job ended. */
export type JobEnd =
  | { kind: 'report'; report: AttemptReport }
  /** The worker died while it worked on the job: the message may have been sent. */
  | { kind: 'lost' }
  /** The worker had not begun it. */
  | { kind: 'returned' }
  /** It cannot be posted to a thread. */
  | { kind: 'unsendable'; error: unknown };

export interface WorkerPoolOptions {
  script: URL;
  workers: number;
  /** Idle connections of all workers together at most. */
  idleConnections: number;
  /** PEM certificates of authorities to trust in addition to the built-in ones. */
  authorities?: readonly string[] | undefined;
}

/**
 * The default of 48 MB for new objects would be used up by each thread; messages that were composed are garbage soon. The
 * limit must not stop a thread that holds large messages, so the heap is not limited otherwise.
 */
const THREAD_LIMITS = { maxYoungGenerationSizeMb: 24 };
const FIRST_PAUSE_MS = 200;
const MAX_PAUSE_MS = 30 * SECOND;
/** A worker itself ends each message after 15 minutes. */
const JOB_TIMEOUT_MS = 20 * MINUTE;
/** After the grace period a thread has this long to report, and then this long to terminate. */
const EXIT_TIMEOUT_MS = 2 * SECOND;

interface Thread {
  worker: Worker;
  /** By class of job: how many the thread began, counted by the thread, and how many were posted to it. */
  begun: Int32Array;
  posted: number[];
  reported: boolean;
  exited: Promise<void>;
}

type Resolve = (end: JobEnd) => void;

interface UnsentJob {
  job: DeliveryJob;
  resolve: Resolve;
}

interface HeldJob {
  resolve: Resolve;
  jobClass: 0 | 1;
  /** Counts the jobs of this class and thread from 0. */
  order: number;
  postedAt: number;
}

/** A worker: its current thread, and the jobs that it has. */
interface WorkerHandle {
  index: number;
  /** Null: the last thread died, and the next one is not started yet. */
  thread: Thread | null;
  /** Posted and not reported, in the order of posting. */
  held: Map<number, HeldJob>;
  outbox: UnsentJob[];
  flushing: boolean;
  /** Pause before the next restart, ms. */
  pause: number;
  restart: NodeJS.Timeout | null;
}

const RETURNED: JobEnd = { kind: 'returned' };
const LOST: JobEnd = { kind: 'lost' };

/**
 * The worker threads. All jobs of a connection slot go to the same worker. When a thread dies another one is started,
 * after a pause that grows while threads die before they have reported anything; jobs that are sent meanwhile wait.
 *
 * Starts `options.workers` threads immediately; they keep the process running until `stop`. Jobs of one turn of the
 * event loop are posted as one message; while a thread is restarted, its jobs wait in memory without a bound.
 */
export function createWorkerPool(
  { log, monotonic }: Pick<Runtime, 'log' | 'monotonic'>,
  options: WorkerPoolOptions,
) {
  let stopping = false;
  const handles = Array.from({ length: options.workers }, (_, index): WorkerHandle => {
    const handle = {
      index,
      thread: null,
      held: new Map(),
      outbox: [],
      flushing: false,
      pause: 0,
      restart: null,
    };
    start(handle);
    return handle;
  });

  function start(handle: WorkerHandle): void {
    const begun = new SharedArrayBuffer(JOB_CLASSES * Int32Array.BYTES_PER_ELEMENT);
    const workerData: WorkerSetup = {
      begun,
      authorities: [...(options.authorities ?? [])],
      idleConnections: Math.max(1, Math.floor(options.idleConnections / options.workers)),
    };
    const worker = new Worker(options.script, { workerData, resourceLimits: THREAD_LIMITS });
    const thread: Thread = {
      worker,
      begun: new Int32Array(begun),
      posted: Array.from({ length: JOB_CLASSES }, () => 0),
      reported: false,
      exited: new Promise((resolve) => {
        // All messages of the thread precede this event.
        worker.once('exit', () => {
          died(handle, thread);
          resolve();
        });
      }),
    };
    handle.thread = thread;
    worker.on('message', (message: FromWorker) => receive(handle, message));
    worker.on('error', (error) => log.error({ err: error, worker: handle.index }, 'delivery worker failed'));
    flush(handle);
  }

  function receive(handle: WorkerHandle, message: FromWorker): void {
    if (message.kind === 'fault')
      log.error({ message: message.id, fault: message.error }, 'delivery worker failed on one message');
    if (message.kind === 'stopped') {
      // The thread begins no further job and has reported those it began: no host was offered the others.
      for (const { resolve } of handle.held.values()) resolve(RETURNED);
      handle.held.clear();
    }
    if (message.kind !== 'reports') return;
    if (handle.thread !== null) handle.thread.reported = true;
    for (const report of message.reports) {
      const held = handle.held.get(report.id);
      handle.held.delete(report.id);
      held?.resolve({ kind: 'report', report });
    }
  }

  function died(handle: WorkerHandle, thread: Thread): void {
    handle.thread = null;
    const ended = { lost: 0, returned: 0 };
    for (const { jobClass, order, resolve } of handle.held.values()) {
      const isLost = order < Atomics.load(thread.begun, jobClass);
      ended[isLost ? 'lost' : 'returned']++;
      resolve(isLost ? LOST : RETURNED);
    }
    handle.held.clear();
    if (!stopping) scheduleRestart(handle, thread, ended);
    else if (ended.lost + ended.returned > 0)
      log.error({ worker: handle.index, ...ended }, 'delivery worker ended early');
  }

  function scheduleRestart(handle: WorkerHandle, thread: Thread, messages: object): void {
    handle.pause =
      thread.reported || handle.pause === 0 ? FIRST_PAUSE_MS : Math.min(handle.pause * 2, MAX_PAUSE_MS);
    log.error(
      { worker: handle.index, ...messages, restartMs: handle.pause },
      'delivery worker ended; starting another',
    );
    restartLater(handle);
  }

  function restartLater(handle: WorkerHandle): void {
    handle.restart = setTimeout(() => {
      handle.restart = null;
      try {
        start(handle);
      } catch (error) {
        handle.pause = MAX_PAUSE_MS;
        log.error({ err: error, worker: handle.index }, 'delivery worker could not be started; trying again');
        restartLater(handle);
      }
    }, handle.pause);
  }

  /** Jobs that are sent in the same turn of the event loop are posted as one message. */
  function flush(handle: WorkerHandle): void {
    handle.flushing = false;
    const { thread, outbox } = handle;
    if (thread === null || outbox.length === 0) return;
    handle.outbox = [];
    try {
      post(handle, thread, outbox);
    } catch (error) {
      if (outbox.length === 1) {
        outbox[0]?.resolve({ kind: 'unsendable', error });
        return;
      }
      // One of the jobs cannot be cloned; none was posted.
      for (const unsent of outbox) {
        handle.outbox = [unsent];
        flush(handle);
      }
    }
  }

  function post(handle: WorkerHandle, thread: Thread, outbox: readonly UnsentJob[]): void {
    const message: ToWorker = { kind: 'jobs', jobs: outbox.map(({ job }) => job) };
    thread.worker.postMessage(
      message,
      outbox.flatMap(({ job: { content } }) => (content.encoding === 'text' ? [] : [content.bytes.buffer])),
    );
    const postedAt = monotonic.now();
    for (const { job, resolve } of outbox) {
      const jobClass = jobClassOf(job);
      const order = thread.posted[jobClass] ?? 0;
      thread.posted[jobClass] = order + 1;
      handle.held.set(job.id, { resolve, jobClass, order, postedAt });
    }
  }

  async function stopHandle(handle: WorkerHandle, graceMs: number): Promise<void> {
    if (handle.restart !== null) clearTimeout(handle.restart);
    for (const { resolve } of handle.outbox.splice(0)) resolve(RETURNED);
    const { thread } = handle;
    if (thread === null) return;
    const stop: ToWorker = { kind: 'stop', graceMs };
    thread.worker.postMessage(stop);
    const exited = thread.exited.then(() => true);
    if ((await withTimeout(exited, graceMs + EXIT_TIMEOUT_MS)) === true) return;
    log.error({ worker: handle.index }, 'delivery worker did not stop in time; terminating it');
    const terminated = Promise.all([thread.worker.terminate(), exited]);
    if ((await withTimeout(terminated, EXIT_TIMEOUT_MS)) !== null) return;
    died(handle, thread);
  }

  /** Resolves when the job has ended. `worker`: any non-negative integer; equal numbers select the same worker. */
  function send(worker: number, job: DeliveryJob): Promise<JobEnd> {
    const handle = handles[worker % handles.length];
    if (handle === undefined) throw new Error('the pool has no workers');
    return new Promise((resolve) => {
      if (stopping) return resolve(RETURNED);
      handle.outbox.push({ job, resolve });
      if (handle.flushing) return;
      handle.flushing = true;
      setImmediate(flush, handle);
    });
  }

  /** Number of threads that are running. */
  const running = (): number => handles.filter(({ thread }) => thread !== null).length;

  /** Milliseconds that the event loop of each thread has been busy since the thread started; 0 without a thread. */
  const busyMs = (): number[] =>
    handles.map(({ thread }) => thread?.worker.performance.eventLoopUtilization().active ?? 0);

  /** Terminates threads that hold a job for far longer than any job may take. Call periodically. */
  function check(): void {
    const before = monotonic.now() - JOB_TIMEOUT_MS;
    for (const { index, thread, held } of handles) {
      // Jobs are in the order in which they were posted.
      const [oldest] = held.values();
      if (thread === null || oldest === undefined || oldest.postedAt > before) continue;
      log.error({ worker: index }, 'delivery worker exceeded the time limit of a message; terminating it');
      void thread.worker.terminate();
    }
  }

  /**
   * Lets the workers end the jobs in progress, for at most `graceMs`, and resolves soon after that even if they do not:
   * all jobs have then ended.
   */
  async function stop(graceMs: number): Promise<void> {
    stopping = true;
    await Promise.all(handles.map((handle) => stopHandle(handle, graceMs)));
  }

  return { send, running, busyMs, check, stop };
}

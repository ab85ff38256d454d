import type { Worker } from 'node:worker_threads';
import { SECOND } from '../../core/clock.ts';
import type { Log } from '../../core/log.ts';
import { createFairQueue, type Priority, type Turn } from './fair-queue.ts';
import type { ParseJob, Readings } from './parse-worker.ts';

/**
 * Has mails parsed in a thread of its own, one after the other and each within a time limit. A mail that two
 * threads do not survive is unreadable; the mails behind it go to the next thread. Callers and recipients take
 * turns (fair-queue.ts), so a flood delays nobody else by more than the mail in hand.
 */
export interface MailReader {
  /** Null when too many mails of this caller, for this recipient or in all are waiting. */
  read<Job extends ParseJob>(job: Job, turn: Turn): Promise<Readings[Job['purpose']] | Unreadable> | null;
  stop(): Promise<void>;
}

/** too-long, failed: caused by the mail. stopping: the mail was not read. */
export type Unreadable = { unreadable: 'too-long' | 'failed' | 'stopping' };

interface Waiting {
  job: ParseJob;
  turn: Turn;
  /** Threads that died while they read it. */
  deaths: number;
  resolve(reading: Readings[keyof Readings] | Unreadable): void;
}

const TIMEOUT_MS = 5 * SECOND;
/**
 * Handed to the thread in advance, so that it goes on parsing while a commit occupies the main thread. Only
 * small mails: what has been handed over is no longer ordered by anybody's turn.
 */
const MAX_AHEAD = 32;
const MAX_BYTES_AHEAD = 512 * 1024;
/** A report waits until the thread is idle: what arrives meanwhile goes first. */
const MAX_AHEAD_BY_PRIORITY: Record<Priority, number> = { first: MAX_AHEAD, normal: 4, last: 0 };
/** A thread that dies without a mail in hand is not restarted in a tight loop. */
const RESTART_MS = SECOND;

/** Megabytes of heap of a thread: many times what a mail of the largest size needs. */
export const READER_HEAP_MB = 512;

export function createMailReader(settings: { startThread(): Worker; log: Log; timeMs?: number }): MailReader {
  const { log, timeMs = TIMEOUT_MS } = settings;
  const queue = createFairQueue<Waiting>(() => performance.now());
  /** Handed to the thread, which reads them in this order: it is at work on the first. */
  let sent: Waiting[] = [];
  let sentBytes = 0;
  /** When the thread began with the first. */
  let begunAt = 0;
  let thread: Worker | null = null;
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;

  function start(): void {
    const started = settings.startThread();
    thread = started;
    started.on('message', (reading: Readings[keyof Readings]) => {
      if (thread === started) done(reading);
    });
    started.on('error', (error) => {
      log.error({ err: error }, 'mail parser thread failed');
    });
    started.on('exit', () => {
      if (thread === started) lost();
    });
    next();
  }

  function done(reading: Readings[keyof Readings]): void {
    const finished = sent.shift();
    if (finished !== undefined) {
      sentBytes -= finished.job.raw.length;
      queue.charge(finished.turn, performance.now() - begunAt);
      finished.resolve(reading);
    }
    watch();
    next();
  }

  function next(): void {
    if (thread === null || sent.length >= MAX_AHEAD) return;
    for (let waiting = queue.take(mayHandOver); waiting !== undefined; waiting = queue.take(mayHandOver)) {
      sent.push(waiting);
      sentBytes += waiting.job.raw.length;
      thread.postMessage(waiting.job);
      if (sent.length === 1) watch();
    }
  }

  function mayHandOver({ job, turn }: Waiting): boolean {
    if (sent.length === 0) return true;
    const samePriority = sent.filter((each) => each.turn.priority === turn.priority).length;
    return (
      sent.length < MAX_AHEAD &&
      samePriority < MAX_AHEAD_BY_PRIORITY[turn.priority] &&
      sentBytes + job.raw.length <= MAX_BYTES_AHEAD
    );
  }

  /** Starts the time of the first one. */
  function watch(): void {
    clearTimeout(timer);
    begunAt = performance.now();
    if (sent.length > 0) timer = setTimeout(timedOut, timeMs);
  }

  /** Returns the mail in hand; those behind it wait for another thread. */
  function takeBack(): Waiting | undefined {
    clearTimeout(timer);
    thread = null;
    const [first, ...others] = sent;
    sent = [];
    sentBytes = 0;
    for (const waiting of others.toReversed()) queue.putBack(waiting);
    return first;
  }

  /** A busy thread receives no messages: it is terminated. */
  function timedOut(): void {
    const slow = thread;
    const first = takeBack();
    const caller = first?.turn.caller;
    log.error({ ms: timeMs, purpose: first?.job.purpose, caller }, 'mail parser timed out');
    if (first !== undefined) queue.charge(first.turn, timeMs);
    first?.resolve({ unreadable: 'too-long' });
    void slow?.terminate();
    if (!stopped) start();
  }

  function lost(): void {
    const first = takeBack();
    if (first !== undefined && ++first.deaths < 2) queue.putBack(first);
    else first?.resolve({ unreadable: 'failed' });
    setTimeout(() => stopped || start(), RESTART_MS).unref();
  }

  function read<Job extends ParseJob>(
    job: Job,
    turn: Turn,
  ): Promise<Readings[Job['purpose']] | Unreadable> | null {
    let resolve: Waiting['resolve'] = () => {};
    const reading = new Promise<Readings[Job['purpose']] | Unreadable>((settle) => {
      // The thread answers each job with the reading of its purpose, in order.
      resolve = settle as Waiting['resolve'];
    });
    if (!queue.push({ job, turn, deaths: 0, resolve })) return null;
    next();
    return reading;
  }

  start();
  return {
    read,
    stop: async () => {
      stopped = true;
      const last = thread;
      takeBack()?.resolve({ unreadable: 'stopping' });
      for (const { resolve } of queue.clear()) resolve({ unreadable: 'stopping' });
      await last?.terminate();
    },
  };
}

import type { Worker } from 'node:worker_threads';
import { SECOND } from '../core/clock.ts';
import type { Log } from '../core/log.ts';
import type { ParseJob, Readings } from './parse-worker.ts';

/**
 * Has mails read in a thread of their own, one after the other, each for so long and no longer. A
 * mail that two threads do not survive is unreadable; those behind it go to the next thread.
 */
export interface MailReader<Reading> {
  /**
   * Null when too many wait already. What is proven ours is read first: anybody may send the rest, as much as
   * they like.
   */
  read(raw: Buffer, isProven: boolean): Promise<Reading | Unreadable> | null;
  stop(): Promise<void>;
}

/** too-long, failed: it is the mail's fault. stopping: it was not looked at. */
export type Unreadable = { unreadable: 'too-long' | 'failed' | 'stopping' };

interface Waiting<Reading> {
  raw: Buffer;
  isProven: boolean;
  /** Threads that died over it. */
  deaths: number;
  resolve(reading: Reading | Unreadable): void;
}

const TIME_MS = 10 * SECOND;
const WAITING = 5000;
/** Handed to the thread at once: while a commit holds us up, it goes on reading, and the next commit holds more. */
const AHEAD = 32;
/** Of those, such as anybody may send. */
const UNPROVEN_AHEAD = 4;
/** A thread that dies without a mail in hand is not to be started in a tight loop. */
const RESTART_MS = SECOND;

/** Megabytes of heap of a thread: many times what a mail of the largest size needs. */
export const READER_HEAP_MB = 512;

export function createMailReader<Purpose extends keyof Readings>(settings: {
  purpose: Purpose;
  startThread(): Worker;
  log: Log;
  timeMs?: number;
}): MailReader<Readings[Purpose]> {
  type Reading = Readings[Purpose];
  const { purpose, log, timeMs = TIME_MS } = settings;
  const proven: Waiting<Reading>[] = [];
  const unproven: Waiting<Reading>[] = [];
  /** With the thread, which reads them in this order: the first is the one in its hands. */
  let sent: Waiting<Reading>[] = [];
  let thread: Worker | null = null;
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;

  function start(): void {
    const started = settings.startThread();
    thread = started;
    started.on('message', (reading: Reading) => {
      if (thread === started) done(reading);
    });
    started.on('error', (error) => {
      log.error({ err: error, purpose }, 'a thread that reads mail failed');
    });
    started.on('exit', () => {
      if (thread === started) lost();
    });
    next();
  }

  function done(reading: Reading): void {
    sent.shift()?.resolve(reading);
    watch();
    next();
  }

  function next(): void {
    if (thread === null) return;
    const jobs = proven.splice(0, AHEAD - sent.length);
    const room = Math.min(
      AHEAD - sent.length - jobs.length,
      UNPROVEN_AHEAD - sent.filter(({ isProven }) => !isProven).length,
    );
    jobs.push(...unproven.splice(0, Math.max(room, 0)));
    for (const job of jobs) {
      sent.push(job);
      const message: ParseJob = { purpose, raw: job.raw };
      thread?.postMessage(message);
      if (sent.length === 1) watch();
    }
  }

  /** The time of the first one begins. */
  function watch(): void {
    clearTimeout(timer);
    if (sent.length > 0) timer = setTimeout(tooLong, timeMs);
  }

  /** Takes the first one from the thread's hands; those behind it wait for another thread. */
  function takeBack(): Waiting<Reading> | undefined {
    clearTimeout(timer);
    thread = null;
    const [first, ...others] = sent;
    sent = [];
    for (const job of others.toReversed()) queueOf(job).unshift(job);
    return first;
  }

  function queueOf({ isProven }: Waiting<Reading>): Waiting<Reading>[] {
    return isProven ? proven : unproven;
  }

  /** A thread that is busy hears nothing: it is ended. */
  function tooLong(): void {
    log.error({ ms: timeMs, purpose }, 'a mail takes too long to read');
    const slow = thread;
    takeBack()?.resolve({ unreadable: 'too-long' });
    void slow?.terminate();
    if (!stopped) start();
  }

  function lost(): void {
    const first = takeBack();
    if (first !== undefined && ++first.deaths < 2) queueOf(first).unshift(first);
    else first?.resolve({ unreadable: 'failed' });
    setTimeout(() => stopped || start(), RESTART_MS).unref();
  }

  start();
  return {
    read: (raw, isProven) =>
      proven.length + unproven.length >= WAITING
        ? null
        : new Promise((resolve) => {
            const job = { raw, isProven, deaths: 0, resolve };
            queueOf(job).push(job);
            next();
          }),
    stop: async () => {
      stopped = true;
      const last = thread;
      takeBack()?.resolve({ unreadable: 'stopping' });
      for (const { resolve } of [...proven.splice(0), ...unproven.splice(0)])
        resolve({ unreadable: 'stopping' });
      await last?.terminate();
    },
  };
}

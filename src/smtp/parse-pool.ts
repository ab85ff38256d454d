import type { Worker } from 'node:worker_threads';
import { SECOND } from '../core/clock.ts';
import type { Log } from '../core/log.ts';
import type { ParseJob, ParseResult, Readings } from './parse-worker.ts';

/**
 * Has mails read in a thread of their own, one after the other, each for so long and no longer. A mail that
 * two threads do not survive is unreadable; those behind it go to the next thread.
 */
/** too-long, failed: it is the mail's fault. stopping: it was not looked at. */
export type Unreadable = { unreadable: 'too-long' | 'failed' | 'stopping' };

export interface MailReader<Reading> {
  /** Null when too many wait already. */
  read(raw: Buffer): Promise<Reading | Unreadable> | null;
  stop(): Promise<void>;
}

interface Waiting<Reading> {
  raw: Buffer;
  /** Threads that died over it. */
  deaths: number;
  resolve(reading: Reading | Unreadable): void;
}

const TIME_MS = 10 * SECOND;
const WAITING = 5000;
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
  const waiting: Waiting<Reading>[] = [];
  let thread: Worker | null = null;
  let busy: { id: number; job: Waiting<Reading>; timer: NodeJS.Timeout } | null = null;
  let number = 0;
  let stopped = false;

  function start(): void {
    const started = settings.startThread();
    thread = started;
    started.on('message', ({ id, reading }: ParseResult<Purpose>) => {
      if (busy?.id === id) finish(reading);
    });
    started.on('error', (error) => {
      log.error({ err: error, purpose }, 'a thread that reads mail failed');
    });
    started.on('exit', () => {
      if (thread === started) lost();
    });
    next();
  }

  function finish(reading: Reading | Unreadable): void {
    if (busy === null) return;
    clearTimeout(busy.timer);
    const { job } = busy;
    busy = null;
    job.resolve(reading);
    next();
  }

  function next(): void {
    if (busy !== null || thread === null) return;
    const job = waiting.shift();
    if (job === undefined) return;
    const id = ++number;
    const message: ParseJob = { id, purpose, raw: job.raw };
    busy = { id, job, timer: setTimeout(tooLong, timeMs) };
    thread.postMessage(message);
  }

  /** A thread that is busy hears nothing: it is ended, and another begins with the next mail. */
  function tooLong(): void {
    log.error({ ms: timeMs, purpose }, 'a mail takes too long to read');
    const slow = thread;
    thread = null;
    void slow?.terminate();
    finish({ unreadable: 'too-long' });
    if (!stopped) start();
  }

  function lost(): void {
    thread = null;
    if (busy !== null && ++busy.job.deaths < 2) {
      clearTimeout(busy.timer);
      waiting.unshift(busy.job);
      busy = null;
    }
    finish({ unreadable: 'failed' });
    setTimeout(() => stopped || start(), RESTART_MS).unref();
  }

  start();
  return {
    read: (raw) =>
      waiting.length >= WAITING
        ? null
        : new Promise((resolve) => {
            waiting.push({ raw, deaths: 0, resolve });
            next();
          }),
    stop: async () => {
      stopped = true;
      const last = thread;
      thread = null;
      finish({ unreadable: 'stopping' });
      for (const { resolve } of waiting.splice(0)) resolve({ unreadable: 'stopping' });
      await last?.terminate();
    },
  };
}

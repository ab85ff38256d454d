import { statfs } from 'node:fs/promises';
import { SECOND } from '../core/clock.ts';
import type { Log } from '../core/log.ts';
import { type Refusal, refuse } from '../core/refusal.ts';
import type { Tables } from '../store/tables.ts';

/**
 * Whether the machine can take more mail: the queue's bound and the free disk, looked at every few seconds.
 * Under pressure sends are answered 503 and nothing is accepted; deliveries go on.
 */
export interface Pressure {
  /** Null: go ahead. */
  refusal(): Refusal | null;
  /** Messages that campaigns may still put into the queue: they leave the last of its room to everybody else. */
  room(): number;
  /** Whether the disk is the reason, or one of two. */
  isDiskLow(): boolean;
  start(): Promise<void>;
  stop(): void;
}

const LOOK_MS = 5 * SECOND;
const RETRY_AFTER_SECONDS = 30;
/** Of the queue's bound, what campaigns may fill: a campaign that is paused must not stop everybody's mail. */
const CAMPAIGNS_SHARE = 0.9;
/** Counting this many takes no time; of more, what comes between two looks is less than what campaigns leave. */
const COUNTED_AT_ONCE = 100_000;

export function createPressure(settings: {
  tables: Tables;
  log: Log;
  dir: string;
  queuedMessages: number;
  freeDiskBytes: number;
  /** Null while outcomes of deliveries can be recorded, else what is wrong. What is accepted could not be sent. */
  unrecorded?: () => string | null;
}): Pressure {
  const { tables, log, dir } = settings;
  let reason: string | null = null;
  let diskLow = false;
  let queued = 0;
  let timer: NodeJS.Timeout | null = null;

  async function look(): Promise<void> {
    const { bavail, bsize } = await statfs(dir);
    queued = tables.queue.count();
    diskLow = bavail * bsize < settings.freeDiskBytes;
    const now = diskLow
      ? 'the disk is nearly full'
      : queued >= settings.queuedMessages
        ? `the queue holds ${queued} messages`
        : null;
    if (now !== reason)
      log.warn({ reason: now }, now === null ? 'accepting mail again' : 'refusing new mail');
    reason = now;
  }

  function again(): void {
    timer = setTimeout(() => {
      look()
        .catch((error: unknown) => log.error({ err: error }, 'looking at disk and queue failed'))
        .finally(again);
    }, LOOK_MS).unref();
  }

  return {
    refusal: () => {
      const why = reason ?? (settings.unrecorded?.() ? 'outcomes of deliveries cannot be recorded' : null);
      return why === null
        ? null
        : refuse('UNAVAILABLE', `Nothing was accepted: ${why}`, { retryAfter: RETRY_AFTER_SECONDS });
    },
    room: () => {
      const count = settings.queuedMessages <= COUNTED_AT_ONCE ? tables.queue.count() : queued;
      // Of a bound of one, too, campaigns may have something.
      return Math.max(0, Math.ceil(settings.queuedMessages * CAMPAIGNS_SHARE) - count);
    },
    isDiskLow: () => diskLow,
    start: async () => {
      await look();
      again();
    },
    stop: () => {
      if (timer !== null) clearTimeout(timer);
    },
  };
}

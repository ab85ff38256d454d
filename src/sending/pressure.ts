import { statfs } from 'node:fs/promises';
import { SECOND } from '../core/clock.ts';
import type { Log } from '../core/log.ts';
import { createLoop } from '../core/loop.ts';
import { type Refusal, refuse } from '../core/refusal.ts';
import type { Tables } from '../store/tables.ts';

/**
 * Whether more mail can be accepted: the limit of the queue and the free disk space, checked every few seconds. Under
 * pressure sends are refused with 503; deliveries continue.
 */
export interface Pressure {
  /** Null: mail is accepted. */
  refusal(): Refusal | null;
  /** Messages that campaigns can still add to the queue; a share of its limit is reserved for other mail. */
  capacity(): number;
  isDiskLow(): boolean;
  /** Messages in the queue at the last check. */
  queued(): number;
  /** Resolves after the first check. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

const CHECK_INTERVAL_MS = 5 * SECOND;
const RETRY_AFTER_SECONDS = 30;
/** The share of the queue's limit that campaigns can fill: a paused campaign must not block other mail. */
const CAMPAIGN_SHARE = 0.9;
/** Counting up to this number is fast. Above it the count of the last check is exact enough for the reserved share. */
const MAX_EXACT_COUNT = 100_000;

export interface PressureDeps {
  tables: Tables;
  log: Log;
  dir: string;
  /** This and the next are read at each check: a reload changes them. */
  readonly queuedMessages: number;
  readonly freeDiskBytes: number;
  /** Null while outcomes of deliveries can be recorded, else the reason: accepted mail could not be sent. */
  unrecorded?: () => string | null;
}

/**
 * Accepts mail until the first check, which `start` runs; `start` rejects with its error. Then a loop checks every 5 s;
 * the error of a later check is logged, and the last result applies.
 */
export function createPressure(deps: PressureDeps): Pressure {
  const { tables, log, dir } = deps;
  let reason: string | null = null;
  let diskLow = false;
  let queued = 0;

  async function check(): Promise<void> {
    const { bavail, bsize } = await statfs(dir);
    queued = tables.queue.count();
    diskLow = bavail * bsize < deps.freeDiskBytes;
    const current = diskLow
      ? 'the disk is nearly full'
      : queued >= deps.queuedMessages
        ? `the queue has ${queued} messages, and its limit is ${deps.queuedMessages}`
        : null;
    if (current !== reason)
      log.warn({ reason: current }, current === null ? 'accepting mail again' : 'refusing new mail');
    reason = current;
  }

  const loop = createLoop({
    name: 'pressure',
    run: check,
    firstMs: CHECK_INTERVAL_MS,
    intervalMs: CHECK_INTERVAL_MS,
    log,
  });

  return {
    refusal: () => {
      const current = reason ?? (deps.unrecorded?.() ? 'outcomes of deliveries cannot be recorded' : null);
      return current === null
        ? null
        : refuse('UNAVAILABLE', `Nothing was accepted: ${current}`, { retryAfter: RETRY_AFTER_SECONDS });
    },
    capacity: () => {
      const count = deps.queuedMessages <= MAX_EXACT_COUNT ? tables.queue.count() : queued;
      // Rounded up, so that campaigns can send even with a limit of one.
      return Math.max(0, Math.ceil(deps.queuedMessages * CAMPAIGN_SHARE) - count);
    },
    isDiskLow: () => diskLow,
    queued: () => queued,
    start: async () => {
      await check();
      loop.start();
    },
    stop: loop.stop,
  };
}

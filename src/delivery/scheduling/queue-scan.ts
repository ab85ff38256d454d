import { type Clock, SECOND } from '../../core/clock.ts';
import type { Log } from '../../core/log.ts';
import type { Writer } from '../../store/database/writer.ts';
import {
  MARKETING_PRIORITY,
  type QueueKey,
  type QueuePriority,
  queueKeyText,
  TRANSACTIONAL_PRIORITY,
} from '../../store/messages/queue.ts';
import type { Tables } from '../../store/tables.ts';
import type { Waits } from '../waits.ts';
import type { Claims } from './claims.ts';
import type { QueueReader } from './queue-reader.ts';
import type { RecentMessages } from './recent-messages.ts';
import type { Scheduler } from './scheduler.ts';
import type { Site } from './site.ts';
import type { Sites } from './sites.ts';

/**
 * Scans the queue for mail that was not announced: mail that came due, and changes made by other processes. It also advances
 * the sites, a part of them in each run, and expires mail that waits for halted ones. A step that fails does not stop the
 * others.
 */
export interface QueueScan {
  /** Scans the next part of the queue. Resolves with the pause until the next run, ms. Never rejects. */
  run(): Promise<number>;
  /**
   * Monotonic time at which the scan last reached the end without errors, initially that of the first run. Null: it has
   * not run yet.
   */
  completedAt(): number | null;
  /** Whether the last runs, two at least, could not read the queue as a whole. */
  isFailing(): boolean;
}

export interface QueueScanDeps {
  clock: Clock;
  monotonic: Clock;
  log: Log;
  tables: Tables;
  writer: Writer;
  sites: Sites;
  claims: Pick<Claims, 'isInProgress'>;
  waits: Pick<Waits, 'sweep'>;
  recent: Pick<RecentMessages, 'sweep'>;
  reader: Pick<QueueReader, 'expiring' | 'expiringBlocked'>;
  scheduler: Pick<Scheduler, 'request' | 'requested' | 'advance'>;
}

/** Keys that one run reads. */
const KEY_BATCH_SIZE = 500;
/**
 * A key that waits at a site is read again after this time, in case its mail goes elsewhere now: a destination may have
 * changed its hosts while those before cannot be reached.
 */
const RECHECK_AFTER_MS = 60 * SECOND;
/** Such keys in one run. */
const RECHECK_BATCH_SIZE = 20;
/** A run that requests fewer keys has mostly skipped waiting ones: the next run follows after the full interval. */
const MIN_REQUESTED_KEYS = 50;
/** While more keys than this are about to be read, no others are requested. */
const MAX_PENDING_KEYS = 1000;
/** Deferred messages that one run makes ready. */
const PROMOTE_BATCH_SIZE = 1000;
export const SCAN_INTERVAL_MS = SECOND;
/** The pause after a run that requested keys and did not reach the end. */
const BUSY_SCAN_INTERVAL_MS = 100;
/** Failed runs in succession after which the queue counts as unreadable: a single one may be caused by a lock. */
const MIN_FAILED_RUNS = 2;
/** Sites that one run advances: mail of one account may have tens of thousands, with destinations that never respond. */
const SITE_BATCH_SIZE = 500;
const EXPIRY_INTERVAL_MS = 30 * SECOND;
/** Messages that the search for expired mail reads in one run. */
const EXPIRY_BATCH_SIZE = 100;

/**
 * Starts no timer. A run requests at most 500 keys of each priority, makes at most 1000 deferred messages ready and advances at
 * most 500 sites; the search for expired mail begins every 30 s and reads 100 messages in a run.
 */
export function createQueueScan(deps: QueueScanDeps): QueueScan {
  const { clock, monotonic, log, tables, writer, sites, claims, waits, recent, reader, scheduler } = deps;
  /** The last key that was read, by priority; null: start at the first. */
  const cursors: [QueueKey | null, QueueKey | null] = [null, null];
  let completedAt: number | null = null;
  /** When the last search for expired messages began. */
  let searchedAt = monotonic.now();
  /** The search for expired messages in progress. */
  let expiry: Generator<void, void> | null = null;
  let failedRuns = 0;
  /** When the sites are advanced again from the first one on, monotonic ms. */
  let sweepAt = Number.NEGATIVE_INFINITY;
  /** The sites that are not advanced yet; null: all are. */
  let unadvanced: Iterator<Site> | null = null;
  /** Waiting keys that this run may still read again. */
  let rechecks = 0;

  /** Makes messages that came due ready. */
  async function promote(): Promise<void> {
    const due = tables.queue.nextDue();
    if (due === null || due > clock.now()) return;
    const keys = await writer.run((all) => all.queue.promote(clock.now(), PROMOTE_BATCH_SIZE));
    for (const key of keys) scheduler.request(key);
  }

  /**
   * Fails mail that expired while it waited for a halted site or a source address, a bounded number of messages in each
   * run. Nothing else would read it for hours.
   */
  function expireWaiting(): void {
    if (expiry === null) {
      if (monotonic.now() - searchedAt < EXPIRY_INTERVAL_MS) return;
      searchedAt = monotonic.now();
      expiry = expiringWaiting();
    }
    for (let n = 0; n < EXPIRY_BATCH_SIZE; n++) {
      if (expiry.next().done !== true) continue;
      expiry = null;
      return;
    }
  }

  function* expiringWaiting(): Generator<void, void> {
    for (const site of sites.all()) {
      // What the operator has paused does not expire.
      if (!site.isHalted() || site.isPaused()) continue;
      for (const key of site.waitingKeys()) yield* reader.expiring(key, site);
    }
    yield* reader.expiringBlocked();
  }

  /** Requests the next keys of a priority that are not known already. */
  function requestKeys(priority: QueuePriority): { isAtEnd: boolean; requested: number } {
    let requested = 0;
    if (scheduler.requested() >= MAX_PENDING_KEYS) return { isAtEnd: false, requested: KEY_BATCH_SIZE };
    let key = cursors[priority];
    // The next run continues where this one stops; after an error it starts at the first key.
    cursors[priority] = null;
    for (let n = 0; n < KEY_BATCH_SIZE; n++) {
      key = tables.queue.keyAfter(priority, key);
      if (key === null) return { isAtEnd: true, requested };
      if (isKnown(key)) continue;
      scheduler.request(key);
      requested++;
    }
    cursors[priority] = key;
    return { isAtEnd: false, requested };
  }

  /** Whether the key waits at a site or has messages in memory, so that it need not be requested. */
  function isKnown(key: QueueKey): boolean {
    const text = queueKeyText(key);
    const since = sites.waiting.since(text);
    if (since === null) return claims.isInProgress(text);
    if (rechecks === 0 || monotonic.now() - since < RECHECK_AFTER_MS) return true;
    rechecks--;
    // It stays in its place at the site.
    sites.waiting.delete(text);
    return false;
  }

  /**
   * Advances the next sites, and removes those that are obsolete. After the last one it begins again, at most once in
   * SCAN_INTERVAL_MS.
   */
  function advanceSites(): void {
    if (unadvanced === null) {
      if (monotonic.now() < sweepAt) return;
      sweepAt = monotonic.now() + SCAN_INTERVAL_MS;
      waits.sweep();
      recent.sweep();
      unadvanced = sites.all()[Symbol.iterator]();
    }
    for (let n = 0; n < SITE_BATCH_SIZE; n++) {
      const next = unadvanced.next();
      if (next.done === true) {
        unadvanced = null;
        return;
      }
      const site = next.value;
      if (sites.removeObsolete(site)) continue;
      try {
        scheduler.advance(site);
      } catch (error) {
        log.error({ err: error, step: 'advance' }, 'queue scan failed');
      }
    }
  }

  /** Runs one step; logs its error. */
  async function attempt<T>(step: string, run: () => T | Promise<T>): Promise<T | null> {
    try {
      return await run();
    } catch (error) {
      log.error({ err: error, step }, 'queue scan failed');
      return null;
    }
  }

  return {
    run: async () => {
      completedAt ??= monotonic.now();
      const promoted = await attempt('promote', async () => {
        await promote();
        return true;
      });
      await attempt('advance', advanceSites);
      await attempt('expire', expireWaiting);
      rechecks = RECHECK_BATCH_SIZE;
      const parts = [
        await attempt('transactional', () => requestKeys(TRANSACTIONAL_PRIORITY)),
        await attempt('marketing', () => requestKeys(MARKETING_PRIORITY)),
      ];
      const isReadable = promoted !== null && !parts.includes(null);
      if (isReadable) completedAt = monotonic.now();
      failedRuns = isReadable ? 0 : failedRuns + 1;
      const isBusy = parts.some(
        (part) => part !== null && !part.isAtEnd && part.requested >= MIN_REQUESTED_KEYS,
      );
      return isBusy || expiry !== null || unadvanced !== null ? BUSY_SCAN_INTERVAL_MS : SCAN_INTERVAL_MS;
    },
    completedAt: () => completedAt,
    isFailing: () => failedRuns >= MIN_FAILED_RUNS,
  };
}

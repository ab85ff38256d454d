import { type Clock, SECOND } from '../../core/clock.ts';
import type { Log } from '../../core/log.ts';
import type { QueueKey, QueuePriority } from '../../store/messages/queue.ts';
import type { Tables } from '../../store/tables.ts';
import type { Writer } from '../../store/writer.ts';
import type { Claims } from './claims.ts';
import type { QueueReader } from './queue-reader.ts';
import type { Scheduler } from './scheduler.ts';
import type { Sites } from './sites.ts';

/**
 * Scans the queue for mail that was not announced: mail that came due, and changes made by other processes. It also
 * advances every site and expires mail that waits for halted ones. A step that fails does not stop the others.
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
  claims: Pick<Claims, 'sweep'>;
  reader: Pick<QueueReader, 'expiring' | 'expiringBlocked' | 'sweep'>;
  scheduler: Pick<Scheduler, 'request' | 'advance'>;
}

/** Keys that one run reads. */
const KEY_BATCH_SIZE = 500;
/** Deferred messages that one run makes ready. */
const PROMOTE_BATCH_SIZE = 1000;
export const SCAN_INTERVAL_MS = SECOND;
/** The pause after a run that did not finish. */
const BUSY_SCAN_INTERVAL_MS = 100;
/** Failed runs in succession after which the queue counts as unreadable: a single one may be caused by a lock. */
const MIN_FAILED_RUNS = 2;
const EXPIRY_INTERVAL_MS = 30 * SECOND;
/** Messages that the search for expired mail reads in one run. */
const EXPIRY_BATCH_SIZE = 100;

export function createQueueScan(deps: QueueScanDeps): QueueScan {
  const { clock, monotonic, log, tables, writer, sites, claims, reader, scheduler } = deps;
  /** The last key that was read, by priority; null: start at the first. */
  const cursors: [QueueKey | null, QueueKey | null] = [null, null];
  let completedAt: number | null = null;
  /** When the last search for expired messages began. */
  let searchedAt = monotonic.now();
  /** The search for expired messages in progress. */
  let expiry: Generator<void, void> | null = null;
  let failedRuns = 0;

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

  /** Requests the next keys of a priority. True when it reached the end. */
  function requestKeys(priority: QueuePriority): boolean {
    let key = cursors[priority];
    // The next run continues where this one stops; after an error it starts at the first key.
    cursors[priority] = null;
    for (let n = 0; n < KEY_BATCH_SIZE; n++) {
      key = tables.queue.keyAfter(priority, key);
      if (key === null) return true;
      scheduler.request(key);
    }
    cursors[priority] = key;
    return false;
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
      claims.sweep();
      sites.sweep();
      reader.sweep();
      await attempt('expire', expireWaiting);
      for (const site of sites.all()) await attempt('advance', () => scheduler.advance(site));
      const ends = [
        await attempt('transactional', () => requestKeys(0)),
        await attempt('marketing', () => requestKeys(1)),
      ];
      const isReadable = promoted !== null && !ends.includes(null);
      if (isReadable) completedAt = monotonic.now();
      failedRuns = isReadable ? 0 : failedRuns + 1;
      return ends.includes(false) || expiry !== null ? BUSY_SCAN_INTERVAL_MS : SCAN_INTERVAL_MS;
    },
    completedAt: () => completedAt,
    isFailing: () => failedRuns >= MIN_FAILED_RUNS,
  };
}

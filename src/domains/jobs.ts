import PQueue from 'p-queue';
import { type Clock, HOUR, MINUTE, SECOND } from '../core/clock.ts';
import { createLoop } from '../core/concurrency/loop.ts';
import type { Log } from '../core/log.ts';
import type { Writer } from '../store/database/writer.ts';
import type { Tables } from '../store/tables.ts';
import type { AdvancePlatformKeys } from './key-rotation/platform-keys.ts';
import type { ProvisionSecondary } from './secondary.ts';
import type { Verifier } from './verification/verify.ts';

/**
 * Background work on domains: scheduled checks, provisioning of secondary lanes, and the platform's own keys. The database
 * contains what is due, so a restart loses nothing, and domains that another process registers are also found.
 */
export interface DomainJobs {
  /** Starts due work within the concurrency limits; resolves when all work in progress has ended. */
  runDue(): Promise<void>;
  /** Begins to start due work periodically. */
  start(): void;
  /** Cancels the work in progress; resolves when it has ended. */
  stop(): Promise<void>;
}

export interface DomainJobsDeps {
  tables: Tables;
  writer: Writer;
  clock: Clock;
  log: Log;
  verify: Verifier;
  provisionSecondary: ProvisionSecondary;
  advancePlatformKeys: AdvancePlatformKeys;
}

/** Domains verified at the same time; each sends about twenty queries. */
const VERIFY_CONCURRENCY = 6;
const INTERVAL_MS = SECOND;
/** Interval of the steps of the platform's own keys. */
const PLATFORM_KEYS_INTERVAL_MS = MINUTE;
/** Pause before work that threw an error is retried: the error is ours, and would otherwise repeat every second. */
const RETRY_MS = HOUR;
/** Pause before a secondary lane that could not be used is probed again. */
const UNUSABLE_RETRY_MS = 5 * MINUTE;

/**
 * Does nothing until `start` or `runDue`; then 6 verifications and one other step run at a time. What failed is tried
 * again after an hour: verifications by the database, the rest by a time in memory.
 */
export function createDomainJobs(deps: DomainJobsDeps): DomainJobs {
  const { tables, writer, clock, log, verify, provisionSecondary, advancePlatformKeys } = deps;
  const checks = new PQueue({ concurrency: VERIFY_CONCURRENCY });
  /** One at a time, separate from the checks: each may wait in the key queue. */
  const provisions = new PQueue({ concurrency: 1 });
  const stopping = new AbortController();
  /** Work in progress or queued, by kind and domain. */
  const busy = new Set<string>();
  /** Domains whose secondary lane could not be provisioned, with the time of the next attempt, epoch ms. */
  const failed = new Map<string, number>();
  /** When the steps of the platform's keys run next, epoch ms. */
  let platformKeysAt = 0;
  const loop = createLoop({
    name: 'domains',
    run: startDue,
    firstMs: INTERVAL_MS,
    intervalMs: INTERVAL_MS,
    log,
  });

  function enqueue(
    queue: PQueue,
    id: string,
    work: () => Promise<unknown>,
    onError: () => Promise<unknown> | void,
  ): void {
    if (busy.has(id)) return;
    busy.add(id);
    const run = async () => {
      try {
        await work();
      } catch (error) {
        if (stopping.signal.aborted) return;
        log.error({ err: error, work: id }, 'background work on a domain failed; trying again later');
        await onError();
      } finally {
        busy.delete(id);
      }
    };
    queue
      .add(run)
      .catch((error: unknown) =>
        log.error({ err: error, work: id }, 'failed work on a domain could not be postponed'),
      );
  }

  function startDue(): void {
    // Bounds the number of domains read and queued.
    if (stopping.signal.aborted || checks.size > 0) return;
    const now = clock.now();
    for (const [domainId, until] of failed) if (until <= now) failed.delete(domainId);
    for (const { domain_id } of tables.domains.unprovisioned()) {
      if (failed.has(domain_id)) continue;
      enqueue(
        provisions,
        `provision ${domain_id}`,
        async () => {
          if (!(await provisionSecondary(domain_id))) failed.set(domain_id, clock.now() + UNUSABLE_RETRY_MS);
        },
        () => void failed.set(domain_id, now + RETRY_MS),
      );
    }
    if (platformKeysAt <= now) {
      platformKeysAt = now + PLATFORM_KEYS_INTERVAL_MS;
      enqueue(
        provisions,
        'platform keys',
        () => advancePlatformKeys(stopping.signal),
        () => void (platformKeysAt = now + RETRY_MS),
      );
    }
    // Domains whose check is in progress are still due, and come first.
    for (const { domain_id } of tables.domains.dueForCheck(now, VERIFY_CONCURRENCY + busy.size)) {
      const options = { fresh: false, automatic: true, signal: stopping.signal };
      enqueue(
        checks,
        `check ${domain_id}`,
        () => verify(domain_id, options),
        () => postpone(domain_id),
      );
    }
  }

  function postpone(domainId: string): Promise<void> {
    return writer.run(({ domains }) => {
      const row = domains.byId(domainId);
      if (row !== null) domains.update({ ...row, next_check_at: clock.now() + RETRY_MS });
    });
  }

  async function idle(): Promise<void> {
    await Promise.all([checks.onIdle(), provisions.onIdle()]);
  }

  return {
    runDue: () => {
      startDue();
      return idle();
    },
    start: loop.start,
    stop: async () => {
      stopping.abort();
      await loop.stop();
      checks.clear();
      provisions.clear();
      await idle();
    },
  };
}

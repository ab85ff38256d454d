import { HOUR, MINUTE, SECOND } from '../core/clock.ts';
import { createLoop } from '../core/concurrency/loop.ts';
import type { Context } from '../store/context.ts';
import type { DomainRow } from '../store/domains/domains.ts';
import type { KeyQueue } from './key-queue.ts';
import type { AdvancePlatformKeys } from './key-rotation/platform-keys.ts';
import { slotSelector } from './key-slots.ts';
import { sealKey } from './keys.ts';
import type { Verifier } from './verification/verify.ts';

/*
 * Background work on domains: scheduled checks, provisioning of secondary lanes, and the platform's own keys. The database
 * contains what is due, so a restart loses nothing, and domains that another process registers are also found.
 */

/** Domains verified at the same time; each sends about twenty queries. */
const VERIFY_CONCURRENCY = 6;
/** Domains of one account verified at the same time: its name servers may never answer, which takes until the timeout. */
const VERIFY_CONCURRENCY_PER_ACCOUNT = 3;
const INTERVAL_MS = SECOND;
/** Interval of the steps of the platform's own keys. */
const PLATFORM_KEYS_INTERVAL_MS = MINUTE;
/** Pause before work that threw an error is retried: the error is ours, and would otherwise repeat every second. */
const RETRY_MS = HOUR;
/** Domains that wait for another attempt to provision their lane. With more, no others are tried: they would fail, too. */
const MAX_FAILED = 1000;
/** Pause before a secondary lane that could not be used is probed again. */
const UNUSABLE_RETRY_MS = 5 * MINUTE;

/**
 * Does nothing until `start` or `runDue`; then runs at most 6 verifications (3 of one account), one provisioning and one
 * step of the platform's keys at a time. What failed is tried again after an hour, a lane that could not be used after 5
 * minutes: verifications by the database, the rest by a time in memory.
 */
export function createDomainJobs(
  {
    tables,
    writer,
    clock,
    monotonic,
    log,
  }: Pick<Context, 'tables' | 'writer' | 'clock' | 'monotonic' | 'log'>,
  {
    verify,
    provisionSecondary,
    advancePlatformKeys,
  }: {
    verify: Verifier;
    provisionSecondary: ProvisionSecondary;
    advancePlatformKeys: AdvancePlatformKeys;
  },
) {
  /** Domains being verified. */
  const checking = new Map<string, { accountId: string; ended: Promise<void> }>();
  const stopping = new AbortController();
  /** The provisioning in progress, of one domain at a time: each may wait in the key queue. */
  let provisioning: Promise<void> | null = null;
  /** The account of the domain that was provisioned last; accounts take turns. */
  let lastProvisioned = '';
  /** Domains whose secondary lane could not be provisioned, with the time of the next attempt, monotonic ms. */
  const failed = new Map<string, number>();
  /** The steps of the platform's keys in progress. */
  let platformKeys: Promise<void> | null = null;
  /** When they run next, monotonic ms. */
  let platformKeysAt = Number.NEGATIVE_INFINITY;
  const loop = createLoop({
    name: 'domains',
    run: startDue,
    firstMs: INTERVAL_MS,
    intervalMs: INTERVAL_MS,
    log,
  });

  /** Logs an error of the work, and calls `onError` then; never rejects. */
  async function run(
    name: string,
    work: () => Promise<unknown>,
    onError: () => Promise<unknown> | void,
  ): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (stopping.signal.aborted) return;
      log.error({ err: error, work: name }, 'background work on a domain failed; trying again later');
      try {
        await onError();
      } catch (postponeError) {
        log.error({ err: postponeError, work: name }, 'failed work on a domain could not be postponed');
      }
    }
  }

  function startDue(): void {
    if (stopping.signal.aborted) return;
    const now = monotonic.now();
    provisioning ??= run('secondary lanes', provisionAll, () => {}).finally(() => (provisioning = null));
    if (platformKeysAt <= now && platformKeys === null) {
      platformKeysAt = now + PLATFORM_KEYS_INTERVAL_MS;
      platformKeys = run(
        'platform keys',
        () => advancePlatformKeys(stopping.signal),
        () => void (platformKeysAt = now + RETRY_MS),
      ).finally(() => (platformKeys = null));
    }
    startChecks(clock.now());
  }

  async function provisionAll(): Promise<void> {
    for (let row = nextUnprovisioned(); row !== null; row = nextUnprovisioned()) {
      const { domain_id, account_id } = row;
      lastProvisioned = account_id;
      const postponeBy = (ms: number) => void failed.set(domain_id, monotonic.now() + ms);
      const provision = async () => {
        if (!(await provisionSecondary(domain_id))) postponeBy(UNUSABLE_RETRY_MS);
      };
      await run(`provision ${domain_id}`, provision, () => postponeBy(RETRY_MS));
    }
  }

  function nextUnprovisioned(): DomainRow | null {
    if (stopping.signal.aborted) return null;
    const now = monotonic.now();
    for (const [domainId, until] of failed) if (until <= now) failed.delete(domainId);
    if (failed.size >= MAX_FAILED) return null;
    return tables.domains.nextUnprovisioned(lastProvisioned, [...failed.keys()]);
  }

  function startChecks(now: number): void {
    while (checking.size < VERIFY_CONCURRENCY) {
      const row = nextCheck(now);
      if (row === null) return;
      const { domain_id, account_id } = row;
      const check = () => verify(domain_id, { fresh: false, automatic: true, signal: stopping.signal });
      const ended = run(`check ${domain_id}`, check, () => postpone(domain_id)).finally(() =>
        checking.delete(domain_id),
      );
      checking.set(domain_id, { accountId: account_id, ended });
    }
  }

  /** The due domain that is checked next: of an account without a check in progress, if there is one. */
  function nextCheck(now: number): DomainRow | null {
    const accounts = [...checking.values()].map(({ accountId }) => accountId);
    const inProgress = [...checking.keys()];
    const full = accounts.filter(
      (id) => accounts.filter((each) => each === id).length >= VERIFY_CONCURRENCY_PER_ACCOUNT,
    );
    const { dueForCheck } = tables.domains;
    return dueForCheck(now, inProgress, accounts) ?? dueForCheck(now, inProgress, full);
  }

  function postpone(domainId: string): Promise<void> {
    return writer.run(({ domains }) => {
      const row = domains.byId(domainId);
      if (row !== null) domains.update({ ...row, next_check_at: clock.now() + RETRY_MS });
    });
  }

  async function idle(): Promise<void> {
    await Promise.all([...[...checking.values()].map(({ ended }) => ended), provisioning, platformKeys]);
  }

  return {
    /** Starts due work within the concurrency limits; resolves when all work in progress has ended. */
    runDue: (): Promise<void> => {
      startDue();
      return idle();
    },
    /** Begins to start due work periodically. */
    start: loop.start,
    /** Cancels the work in progress; resolves when it has ended. */
    stop: async (): Promise<void> => {
      stopping.abort();
      await loop.stop();
      await idle();
    },
  };
}

/** Resolves with the reason why the lane cannot be used, a clause, or null. */
export type ProbeSecondary = () => Promise<string | null>;

/**
 * Provisions the secondary lane of a domain: generates its key. Afterwards the required record contains its target.
 * No effect when the domain does not exist or has its lane. Resolves with false, without a key, while the lane cannot be
 * used. The background jobs find domains without a lane: those for which it could not be used, those registered on the
 * command line, and those whose provisioning a crash ended.
 */
export type ProvisionSecondary = (domainId: string) => Promise<boolean>;

/**
 * Calls `probeSecondary` for each domain and caches nothing; the probe of the daemon does. The key and the state of the
 * domain are stored in one unit of work. Rejects when the key cannot be generated or stored.
 */
export function createProvisionSecondary(
  { tables, writer, clock, log, seal }: Pick<Context, 'tables' | 'writer' | 'clock' | 'log' | 'seal'>,
  { keyQueue, probeSecondary }: { keyQueue: KeyQueue; probeSecondary: ProbeSecondary },
): ProvisionSecondary {
  return async (domainId) => {
    const domain = tables.domains.byId(domainId);
    if (domain === null || domain.alt_provisioned === 1) return true;
    const problem = await probeSecondary();
    if (problem !== null) {
      log.warn({ domainId, domain: domain.name, reason: problem }, 'secondary lane not provisioned yet');
      return false;
    }
    const attributes = {
      selector: slotSelector(domain, 's'),
      lane: 'secondary',
      slot: 's',
      state: 'active',
    } as const;
    const key = sealKey(seal, await keyQueue.generateInBackground(), domainId, attributes, clock.now());
    const provisioned = await writer.run(({ domains, dkimKeys }) => {
      const row = domains.byId(domainId);
      if (row === null || row.alt_provisioned === 1) return null;
      dkimKeys.insert(key);
      domains.update({ ...row, alt_provisioned: 1, updated_at: clock.now() });
      return { domainId, domain: row.name, altDomainId: row.alt_domain_id };
    });
    if (provisioned !== null) log.info(provisioned, 'secondary lane provisioned');
    return true;
  };
}

import { type Clock, DAY, HOUR, MINUTE, SECOND } from '../../core/clock.ts';
import { createGate } from '../../core/concurrency/gate.ts';
import { createLoop } from '../../core/concurrency/loop.ts';
import { within } from '../../core/concurrency/within.ts';
import type { Log } from '../../core/log.ts';
import { createLru } from '../../core/lru.ts';
import { DnsError } from '../../dns/dns-error.ts';
import { canonicalName } from '../../dns/names.ts';
import type { Resolver } from '../../dns/resolver.ts';
import type { Writer } from '../../store/database/writer.ts';
import type { Tables } from '../../store/tables.ts';
import type { StsPolicyRow } from '../../store/tls/sts-policies.ts';
import type { PolicyFault } from '../worker/protocol.ts';
import type { StsFetcher, StsFetchFailure } from './sts-fetch.ts';
import { parseStsRecord, type StsPolicy } from './sts-policy.ts';

/**
 * The MTA-STS policies of recipient domains (RFC 8461 §3.3, §5.1). A policy is stored until it expires. The TXT record is
 * queried each time a route is looked up; if its id has changed, the policy is fetched again. While neither can be
 * obtained, the stored policy applies: an attacker who blocks them gains nothing.
 */
export interface StsPolicies {
  /**
   * The policy that applies to a domain now, for mail of the account (default: this daemon). Never rejects; waits for a fetch
   * for at most 10 s.
   */
  of(domain: string, accountId?: string): Promise<StsLookup>;
  start(): void;
  stop(): Promise<void>;
}

export interface StsLookup {
  /** Null: none is known. */
  policy: StsPolicy | null;
  /** The domain announces a policy that could not be obtained. */
  fault: PolicyFault | null;
}

export interface StsPoliciesDeps {
  clock: Clock;
  /** For durations: setting the system clock does not change it. */
  monotonic: Clock;
  log: Log;
  resolver: Pick<Resolver, 'txt'>;
  tables: Pick<Tables, 'stsPolicies'>;
  writer: Writer;
  fetcher: StsFetcher;
  /** Called after each fetch, for metrics. */
  observe?: ((result: 'fetched' | StsFetchFailure) => void) | undefined;
  /** How long a route waits for a fetch, ms. */
  maxWaitMs?: number;
  /** How often policies that are due are refreshed, ms. Default: one minute. */
  refreshIntervalMs?: number;
}

const MAX_WAIT_MS = 10 * SECOND;
/**
 * Fetches at a time, and those of one account: anyone may announce a policy at a host that never responds, and send mail to
 * it.
 */
const MAX_FETCHES = 100;
const MAX_FETCHES_PER_ACCOUNT = 20;
const MAX_WAITING_FETCHES = 1000;
const MAX_WAITING_FETCHES_PER_ACCOUNT = 100;
/** RFC 8461 §3.3: a failed fetch is not repeated for the same id for some minutes. */
const RETRY_MS = 5 * MINUTE;
const MAX_FAILURES = 10_000;
const REFRESH_INTERVAL_MS = MINUTE;
const REFRESH_BATCH_SIZE = 20;
const EXPIRY_BATCH_SIZE = 200;
const TOO_MANY_FETCHES: PolicyFault = {
  type: 'sts-policy-fetch-error',
  text: 'too many policies are being fetched',
};
const REFRESH_RETRY_MS = HOUR;
/** A policy that was not used for this time expires without a refresh. */
const UNUSED_MS = 30 * DAY;

/**
 * `start` begins the refresh of due policies, at most 20 in a run; `of` works without it. At most 100 fetches run and
 * 1000 wait, 20 and 100 of one account. `stop` closes `fetcher` and resolves when no fetch is in progress.
 */
export function createStsPolicies(deps: StsPoliciesDeps): StsPolicies {
  const { clock, monotonic, log, resolver, tables, writer, fetcher, maxWaitMs = MAX_WAIT_MS } = deps;
  const { refreshIntervalMs = REFRESH_INTERVAL_MS } = deps;
  const gate = createGate({
    concurrency: MAX_FETCHES,
    perKey: MAX_FETCHES_PER_ACCOUNT,
    maxWaiting: MAX_WAITING_FETCHES,
    maxWaitingPerKey: MAX_WAITING_FETCHES_PER_ACCOUNT,
  });
  /** By account and domain: an account never waits for the queue of another one. */
  const inProgress = new Map<string, Promise<StsLookup>>();
  /** Failed fetches, by domain and id. */
  const failures = createLru<{ fault: PolicyFault; until: number }>(MAX_FAILURES);
  const loop = createLoop({
    name: 'mta-sts-refresh',
    run: refreshSome,
    intervalMs: refreshIntervalMs,
    firstMs: refreshIntervalMs,
    jitter: 0.2,
    log,
  });
  let stopped = false;

  function stored(domain: string): StsPolicyRow | null {
    const row = tables.stsPolicies.get(domain);
    return row !== null && row.expires_at > clock.now() ? row : null;
  }

  /** The announced id; null when there is no announcement, or it cannot be looked up. */
  async function announcedId(domain: string, owner: string): Promise<string | null> {
    try {
      const { records } = await resolver.txt(`_mta-sts.${domain}`, { owner });
      return parseStsRecord(records.map((strings) => strings.join('')));
    } catch (error) {
      if (error instanceof DnsError) return null;
      throw error;
    }
  }

  async function find(domain: string, accountId: string): Promise<StsLookup> {
    const row = stored(domain);
    const known: StsLookup = { policy: row === null ? null : policyOf(row), fault: null };
    if (row !== null) markUsed(row);
    const id = await announcedId(domain, accountId);
    if (id === null || id === row?.policy_id) return known;
    const failure = failures.get(`${domain} ${id}`);
    if (failure !== undefined && failure.until > monotonic.now()) return { ...known, fault: failure.fault };
    const fetched = await within(fetchOnce(domain, id, accountId), maxWaitMs);
    if (fetched === null) {
      const text = `the policy of ${domain} was not received within ${maxWaitMs / SECOND} s`;
      return { ...known, fault: { type: 'sts-policy-fetch-error', text } };
    }
    return fetched.policy === null ? { ...known, fault: fetched.fault } : fetched;
  }

  /** Never rejects. */
  function fetchOnce(domain: string, id: string, accountId: string): Promise<StsLookup> {
    const key = `${accountId} ${domain}`;
    const same = inProgress.get(key);
    if (same !== undefined) return same;
    const fetching = gate
      .run(accountId, () => fetchUnlessStored(domain, id))
      .then((found): StsLookup => found ?? { policy: null, fault: TOO_MANY_FETCHES })
      .catch((error: unknown): StsLookup => {
        log.error({ err: error, domain }, 'MTA-STS policy could not be stored');
        return { policy: null, fault: { type: 'sts-policy-fetch-error', text: 'internal error' } };
      })
      .finally(() => inProgress.delete(key));
    inProgress.set(key, fetching);
    return fetching;
  }

  /** While the fetch waited, that of another account may have ended. */
  async function fetchUnlessStored(domain: string, id: string): Promise<StsLookup> {
    const row = stored(domain);
    if (row !== null && row.policy_id === id && row.fetched_at > clock.now() - RETRY_MS)
      return { policy: policyOf(row), fault: null };
    return fetchAndStore(domain, id);
  }

  async function fetchAndStore(domain: string, id: string): Promise<StsLookup> {
    const result = await fetcher.fetch(domain);
    deps.observe?.(result.kind === 'policy' ? 'fetched' : result.type);
    if (result.kind === 'failed') {
      const { type, reason } = result;
      log.warn({ domain, result: type, reason }, 'MTA-STS policy could not be fetched');
      const fault: PolicyFault = { type, text: reason };
      failures.set(`${domain} ${id}`, { fault, until: monotonic.now() + RETRY_MS });
      return { policy: null, fault };
    }
    const { policy } = result;
    const now = clock.now();
    const row = rowOf(domain, id, policy, now);
    await writer.run((all) => all.stsPolicies.put(row));
    log.info({ domain, mode: policy.mode, maxAge: policy.maxAge }, 'MTA-STS policy fetched');
    return { policy, fault: null };
  }

  function markUsed(row: StsPolicyRow): void {
    const now = clock.now();
    if (stopped || !tables.stsPolicies.needsUse(row, now)) return;
    writer
      .run((all) => all.stsPolicies.markUsed(row.domain, now))
      .catch((error: unknown) => log.error({ err: error }, 'use of an MTA-STS policy could not be recorded'));
  }

  /** Fetches policies again before they expire, also if their id has not changed (RFC 8461 §10.2). */
  async function refreshSome(): Promise<number | undefined> {
    const now = clock.now();
    const expired = await writer.run((all) => all.stsPolicies.expire(now, EXPIRY_BATCH_SIZE));
    const due = tables.stsPolicies.due(now, REFRESH_BATCH_SIZE);
    await Promise.all(due.map(refresh));
    return expired === EXPIRY_BATCH_SIZE || due.length === REFRESH_BATCH_SIZE ? SECOND : undefined;
  }

  async function refresh(row: StsPolicyRow): Promise<void> {
    const { domain, expires_at } = row;
    const now = clock.now();
    if (row.used_at < now - UNUSED_MS)
      return writer.run((all) => all.stsPolicies.postpone(domain, expires_at));
    const id = (await announcedId(domain, '')) ?? row.policy_id;
    const { policy } = await fetchOnce(domain, id, '');
    if (policy === null)
      await writer.run((all) => all.stsPolicies.postpone(domain, clock.now() + REFRESH_RETRY_MS));
  }

  return {
    of: async (name, accountId = '') => {
      const domain = canonicalName(name);
      if (domain === null) return { policy: null, fault: null };
      try {
        return await find(domain, accountId);
      } catch (error) {
        // A database that cannot be read also stops deliveries, which is reported there.
        log.error({ err: error, domain }, 'MTA-STS policy could not be looked up');
        const text = 'the stored MTA-STS policies could not be read';
        return { policy: null, fault: { type: 'sts-policy-fetch-error', text } };
      }
    },
    start: loop.start,
    stop: async () => {
      stopped = true;
      // Fetches in progress and waiting ones fail now.
      gate.close();
      await fetcher.close();
      await loop.stop();
      await Promise.all(inProgress.values());
    },
  };
}

function policyOf({ mode, mx, max_age }: StsPolicyRow): StsPolicy {
  const patterns: string[] = JSON.parse(mx);
  return { mode, mx: patterns, maxAge: max_age };
}

function rowOf(domain: string, id: string, policy: StsPolicy, now: number): StsPolicyRow {
  const ms = policy.maxAge * SECOND;
  return {
    domain,
    policy_id: id,
    mode: policy.mode,
    mx: JSON.stringify(policy.mx),
    max_age: policy.maxAge,
    fetched_at: now,
    expires_at: now + ms,
    refresh_at: now + Math.max(Math.min(DAY, ms / 2), RETRY_MS),
    used_at: now - (now % DAY),
  };
}

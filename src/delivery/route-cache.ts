import type { DeliveryRoute } from '../config/setting-types.ts';
import { SECOND } from '../core/clock.ts';
import { createGate } from '../core/concurrency/gate.ts';
import { createExpiringCache } from '../core/lru.ts';
import type { Runtime } from '../core/runtime.ts';
import type { Ipv6Use } from './egress-pools.ts';
import { type FindRoute, failure, type RouteResult } from './routes.ts';

/** For whose mail a route is wanted. */
export interface WantedRoute {
  accountId: string;
  /** A next hop that precedes the configured routes; null: none. */
  via: DeliveryRoute | null;
}

const MAX_CACHED = 50_000;
const MIN_TTL_SECONDS = 5;
/**
 * Lookups at the same time, and those of one account. Name servers of others may never answer: a lookup then takes several
 * timeouts of DNS, and up to ten of the concurrent queries of the resolver, which shares them between accounts.
 */
const MAX_LOOKUPS = 1024;
const MAX_LOOKUPS_PER_ACCOUNT = 64;
/** Lookups that wait. Keys of the queue without a lookup are requested again by the scan of the queue. */
const MAX_WAITING = 10_000;
const MAX_WAITING_PER_ACCOUNT = 1000;
/** Callers that wait for one lookup: for keys of both priorities, and for the same key again while it waits. */
const MAX_CALLERS = 10;

export type RouteCache = ReturnType<typeof createRouteCache>;

/**
 * Caches 50,000 routes, each for its TTL and at least 5 s; the least recently used is removed first. Accounts share them,
 * except those of destinations whose TLS policy could not be obtained. An error of `find` is logged and cached for 5 s as
 * the failure `dns-trouble`.
 */
export function createRouteCache({ monotonic, log }: Pick<Runtime, 'monotonic' | 'log'>, find: FindRoute) {
  const cache = createExpiringCache<RouteResult>(monotonic, MAX_CACHED);
  /** Lookups in progress and waiting ones, by account and route: an account never waits for another one. */
  const pending = new Map<string, { ended: Promise<boolean>; callers: number }>();
  const gate = createGate({
    concurrency: MAX_LOOKUPS,
    perKey: MAX_LOOKUPS_PER_ACCOUNT,
    maxWaiting: MAX_WAITING,
    maxWaitingPerKey: MAX_WAITING_PER_ACCOUNT,
  });
  /** Number of calls of `clear`: the result of a lookup that began before the last one is not cached. */
  let clears = 0;

  /** The route for an account: that of all, or its own. */
  function cached(accountId: string, key: string): RouteResult | null {
    return cache.get(key) ?? cache.get(`${accountId} ${key}`) ?? null;
  }

  async function lookUp(
    key: string,
    destination: string,
    ipv6: Ipv6Use,
    { accountId, via }: WantedRoute,
  ): Promise<void> {
    // While this lookup waited, another account's may have found the route.
    if (cached(accountId, key) !== null) return;
    const clearsBefore = clears;
    const result = await find(destination, ipv6, via, accountId).catch((error: unknown) => {
      // An internal error must not bounce mail: it is handled like a DNS failure, and logged.
      log.error({ err: error, destination }, 'route lookup failed');
      return failure('dns-trouble', MIN_TTL_SECONDS, via);
    });
    // Another account's lookup may have been answered meanwhile.
    const isWorse =
      result.kind === 'failure' && result.failure === 'dns-trouble' && cache.get(key) !== undefined;
    if (clearsBefore !== clears || isWorse) return;
    // The policy may be unknown because the account waits for many others: another account looks it up itself.
    const fault = result.kind === 'hosts' ? (result.tls?.fault ?? null) : null;
    const ms = Math.max(result.ttl, MIN_TTL_SECONDS) * SECOND;
    cache.set(fault === null ? key : `${accountId} ${key}`, result, ms);
  }

  /** The route if it is known; never begins a lookup. */
  function peek(destination: string, ipv6: Ipv6Use, { accountId, via }: WantedRoute): RouteResult | null {
    return cached(accountId, cacheKey(destination, ipv6, via));
  }

  /**
   * The route if it is known, else its lookup for mail of the account, which resolves with true when the route is known, and
   * with false when too many lookups of the account wait. Null: enough callers wait for the lookup.
   */
  function get(
    destination: string,
    ipv6: Ipv6Use,
    wanted: WantedRoute,
  ): RouteResult | Promise<boolean> | null {
    const key = cacheKey(destination, ipv6, wanted.via);
    const known = cached(wanted.accountId, key);
    if (known !== null) return known;
    const name = `${wanted.accountId} ${key}`;
    const lookup = pending.get(name) ?? { ended: run(), callers: 0 };
    pending.set(name, lookup);
    return lookup.callers++ < MAX_CALLERS ? lookup.ended : null;

    async function run(): Promise<boolean> {
      const hasRun = await gate.run(wanted.accountId, async () => {
        await lookUp(key, destination, ipv6, wanted);
        return true;
      });
      pending.delete(name);
      return hasRun !== null;
    }
  }

  /** Removes all routes, and discards lookups in progress. Call after the settings have changed. */
  function clear(): void {
    clears++;
    cache.clear();
  }

  return { get, peek, clear };
}

/** All destinations share the route to a next hop. */
function cacheKey(destination: string, ipv6: Ipv6Use, via: DeliveryRoute | null): string {
  if (via === null) return `${ipv6} ${destination}`;
  const { host, port, tls, user = '' } = via;
  return `${ipv6} via ${host}:${port} ${tls} ${user}`;
}

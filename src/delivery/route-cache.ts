import type { DeliveryRoute } from '../config/setting-types.ts';
import type { Clock } from '../core/clock.ts';
import { createGate } from '../core/concurrency/gate.ts';
import type { Log } from '../core/log.ts';
import { createLru } from '../core/lru.ts';
import type { Ipv6Use } from './egress-pools.ts';
import { failure, type RouteFinder, type RouteResult } from './routes.ts';

/** Caches routes. A caller never waits for a lookup: it gets null and is called back. */
export interface RouteCache {
  /**
   * The route if it is known; null while it is looked up for mail of the account: `onKnown` is then called when it is
   * known. It is not called if too many lookups of the account are waiting.
   */
  get(
    destination: string,
    ipv6: Ipv6Use,
    onKnown: (() => void) | null,
    wanted: WantedRoute,
  ): RouteResult | null;
  /** The route if it is known; never begins a lookup. */
  peek(destination: string, ipv6: Ipv6Use, via?: DeliveryRoute | null): RouteResult | null;
  /** Removes all routes, and discards lookups in progress. Call after the settings have changed. */
  clear(): void;
}

export interface WantedRoute {
  accountId: string;
  /** A next hop that precedes the configured routes; null: none. */
  via: DeliveryRoute | null;
}

export interface RouteCacheDeps {
  finder: RouteFinder;
  /** Monotonic. */
  clock: Clock;
  log: Log;
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
/** Of one lookup: of keys of both priorities, and of repeated requests while it waits. */
const MAX_CALLBACKS = 10;

/**
 * Caches 50,000 routes, each for its TTL and at least 5 s; the least recently used is removed first. Accounts share them,
 * except those of destinations whose TLS policy could not be obtained. An error of the finder is logged and cached for 5 s as
 * the failure `dns-trouble`.
 */
export function createRouteCache({ finder, clock, log }: RouteCacheDeps): RouteCache {
  const cache = createLru<{ result: RouteResult; until: number }>(MAX_CACHED);
  /** Callbacks of lookups in progress and waiting ones, by account and route: an account never waits for another one. */
  const pending = new Map<string, (() => void)[]>();
  const gate = createGate({
    concurrency: MAX_LOOKUPS,
    perKey: MAX_LOOKUPS_PER_ACCOUNT,
    maxWaiting: MAX_WAITING,
    maxWaitingPerKey: MAX_WAITING_PER_ACCOUNT,
  });
  /** Number of calls of `clear`: the result of a lookup that began before the last one is not cached. */
  let clears = 0;

  /** Resolves with false, without a lookup, if too many lookups of the account are waiting. */
  async function lookUp(
    destination: string,
    ipv6: Ipv6Use,
    { accountId, via }: WantedRoute,
  ): Promise<boolean> {
    const ran = await gate.run(accountId, async () => {
      // While this lookup waited, another account's may have found the route.
      if (cached(accountId, destination, ipv6, via) !== null) return true;
      const clearsBefore = clears;
      const result = await find(destination, ipv6, via, accountId);
      // Another account's lookup may have been answered meanwhile.
      const isWorse = isTemporary(result) && peek(destination, ipv6, via) !== null;
      const until = clock.now() + Math.max(result.ttl, MIN_TTL_SECONDS) * 1000;
      const key = cacheKey(destination, ipv6, via);
      // The policy may be unknown because the account waits for many others: another account looks it up itself.
      const fault = result.kind === 'hosts' ? (result.tls?.fault ?? null) : null;
      if (clearsBefore === clears && !isWorse)
        cache.set(fault === null ? key : `${accountId} ${key}`, { result, until });
      return true;
    });
    return ran !== null;
  }

  function callBack(name: string, isKnown: boolean): void {
    const callbacks = pending.get(name) ?? [];
    pending.delete(name);
    // Without a lookup, callers would request it again immediately.
    if (isKnown) for (const onKnown of callbacks) onKnown();
  }

  async function find(
    destination: string,
    ipv6: Ipv6Use,
    via: DeliveryRoute | null,
    accountId: string,
  ): Promise<RouteResult> {
    try {
      return await finder.find(destination, ipv6, via, accountId);
    } catch (error) {
      // An internal error must not bounce mail: it is handled like a DNS failure, and logged.
      log.error({ err: error, destination }, 'route lookup failed');
      return failure('dns-trouble', MIN_TTL_SECONDS, via);
    }
  }

  function valid(key: string): RouteResult | null {
    const entry = cache.get(key);
    return entry !== undefined && entry.until > clock.now() ? entry.result : null;
  }

  function peek(destination: string, ipv6: Ipv6Use, via: DeliveryRoute | null = null): RouteResult | null {
    return valid(cacheKey(destination, ipv6, via));
  }

  /** The route for an account: that of all, or its own. */
  function cached(
    accountId: string,
    destination: string,
    ipv6: Ipv6Use,
    via: DeliveryRoute | null,
  ): RouteResult | null {
    const key = cacheKey(destination, ipv6, via);
    return valid(key) ?? valid(`${accountId} ${key}`);
  }

  return {
    peek,
    get: (destination, ipv6, onKnown, wanted) => {
      const known = cached(wanted.accountId, destination, ipv6, wanted.via);
      if (known !== null) return known;
      const name = `${wanted.accountId} ${cacheKey(destination, ipv6, wanted.via)}`;
      const callbacks = pending.get(name);
      if (callbacks === undefined) {
        pending.set(name, onKnown === null ? [] : [onKnown]);
        void lookUp(destination, ipv6, wanted).then((isKnown) => callBack(name, isKnown));
      } else if (onKnown !== null && callbacks.length < MAX_CALLBACKS) callbacks.push(onKnown);
      return null;
    },
    clear: () => {
      clears++;
      cache.clear();
    },
  };
}

function isTemporary(result: RouteResult): boolean {
  return result.kind === 'failure' && result.failure === 'dns-trouble';
}

/** All destinations share the route to a next hop. */
function cacheKey(destination: string, ipv6: Ipv6Use, via: DeliveryRoute | null): string {
  if (via === null) return `${ipv6} ${destination}`;
  const { host, port, tls, user = '' } = via;
  return `${ipv6} via ${host}:${port} ${tls} ${user}`;
}

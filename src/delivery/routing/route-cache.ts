import type { DeliveryRoute } from '../../config/setting-types.ts';
import type { Clock } from '../../core/clock.ts';
import type { Log } from '../../core/log.ts';
import { createLru } from '../../core/lru.ts';
import type { Ipv6Use } from './egress.ts';
import { failure } from './exchangers.ts';
import type { RouteFinder, RouteResult } from './routes.ts';

/** Caches routes. A caller never waits for a lookup: it gets null and is called back. */
export interface RouteCache {
  /** The route if it is known; null while it is looked up: `onKnown` is then called when it is known. */
  get(
    destination: string,
    ipv6: Ipv6Use,
    onKnown: () => void,
    via?: DeliveryRoute | null,
  ): RouteResult | null;
  /** The route if it is known; never begins a lookup. */
  peek(destination: string, ipv6: Ipv6Use, via?: DeliveryRoute | null): RouteResult | null;
  /** Removes all routes, and discards lookups in progress. Call after the settings have changed. */
  clear(): void;
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
 * Caches 50,000 routes, each for its TTL and at least 5 s; the least recently used is removed first. An error of the
 * finder is logged and cached for 5 s as the failure `dns-trouble`.
 */
export function createRouteCache({ finder, clock, log }: RouteCacheDeps): RouteCache {
  const cache = createLru<{ result: RouteResult; until: number }>(MAX_CACHED);
  const pending = new Map<string, (() => void)[]>();
  /** Number of calls of `clear`: the result of a lookup that began before the last one is not cached. */
  let era = 0;

  async function resolve(
    key: string,
    destination: string,
    ipv6: Ipv6Use,
    via: DeliveryRoute | null,
  ): Promise<void> {
    let result: RouteResult;
    const began = era;
    try {
      result = await finder.find(destination, ipv6, via);
    } catch (error) {
      // An internal error must not bounce mail: it is handled like a DNS failure, and logged.
      log.error({ err: error, destination }, 'route lookup failed');
      result = failure('dns-trouble', MIN_TTL_SECONDS, via);
    }
    if (began === era)
      cache.set(key, { result, until: clock.now() + Math.max(result.ttl, MIN_TTL_SECONDS) * 1000 });
    const waiting = pending.get(key) ?? [];
    pending.delete(key);
    for (const onKnown of waiting) onKnown();
  }

  function peek(destination: string, ipv6: Ipv6Use, via: DeliveryRoute | null = null): RouteResult | null {
    const cached = cache.get(cacheKey(destination, ipv6, via));
    return cached !== undefined && cached.until > clock.now() ? cached.result : null;
  }

  return {
    peek,
    get: (destination, ipv6, onKnown, via = null) => {
      const known = peek(destination, ipv6, via);
      if (known !== null) return known;
      const key = cacheKey(destination, ipv6, via);
      const waiting = pending.get(key);
      if (waiting) {
        waiting.push(onKnown);
        return null;
      }
      pending.set(key, [onKnown]);
      void resolve(key, destination, ipv6, via);
      return null;
    },
    clear: () => {
      era++;
      cache.clear();
    },
  };
}

/** All destinations share the route to a next hop. */
function cacheKey(destination: string, ipv6: Ipv6Use, via: DeliveryRoute | null): string {
  if (via === null) return `${ipv6} ${destination}`;
  const { host, port, tls, user = '' } = via;
  return `${ipv6} via ${host}:${port} ${tls} ${user}`;
}

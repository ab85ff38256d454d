import { LRUCache } from 'lru-cache';
import type { Clock } from '../core/clock.ts';
import type { Log } from '../core/log.ts';
import type { Ipv6Use } from './egress.ts';
import type { HostFinder, Whereabouts } from './hosts.ts';

/**
 * What is known at the moment about where destinations' mail goes. Looking up never makes the scheduler
 * wait: it is told "not yet" and called back.
 */
export interface Destinations {
  /** The whereabouts if known; null while they are looked up, and `known` is called when they are. */
  lookUp(destination: string, ipv6: Ipv6Use, known: () => void): Whereabouts | null;
}

const CACHED = 50_000;
const SHORTEST_SECONDS = 5;

export function createDestinations(settings: { hosts: HostFinder; clock: Clock; log: Log }): Destinations {
  const { hosts, clock, log } = settings;
  const cache = new LRUCache<string, { where: Whereabouts; until: number }>({ max: CACHED });
  const pending = new Map<string, (() => void)[]>();

  async function resolve(key: string, destination: string, ipv6: Ipv6Use): Promise<void> {
    let where: Whereabouts;
    try {
      where = await hosts.find(destination, ipv6);
    } catch (error) {
      // A fault of ours must not bounce anybody's mail: it waits like any DNS trouble, and is logged.
      log.error({ err: error, destination }, 'looking up a destination failed');
      where = { kind: 'failure', failure: 'dns-trouble', ttl: SHORTEST_SECONDS };
    }
    cache.set(key, { where, until: clock.now() + Math.max(where.ttl, SHORTEST_SECONDS) * 1000 });
    const waiting = pending.get(key) ?? [];
    pending.delete(key);
    for (const known of waiting) known();
  }

  return {
    lookUp: (destination, ipv6, known) => {
      const key = `${ipv6} ${destination}`;
      const cached = cache.get(key);
      if (cached !== undefined && cached.until > clock.now()) return cached.where;
      const waiting = pending.get(key);
      if (waiting) {
        waiting.push(known);
        return null;
      }
      pending.set(key, [known]);
      void resolve(key, destination, ipv6);
      return null;
    },
  };
}

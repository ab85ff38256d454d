import type { Config } from '../../config/schema.ts';
import { derived } from '../../core/derived.ts';
import type { UseCase } from '../../store/domains/domains.ts';

/**
 * Source addresses. A region defines the pool of each use case; a pool has one or more entries; a connection slot always
 * uses the same entry.
 */
export interface EgressEntry {
  hostname: string;
  address?: string;
  address6?: string;
}

/**
 * always: an entry of the pool has an IPv6 address. fallback: the system chooses the source address, and IPv6 is used
 * for hosts that have no IPv4 address. never: all entries have an IPv4 address only.
 */
export type Ipv6Use = 'always' | 'fallback' | 'never';

export interface EgressPools {
  poolOf(region: string, useCase: UseCase): string;
  /** The entry that a connection slot of a site uses. */
  entry(pool: string, connection: number): EgressEntry;
  ipv6Of(pool: string): Ipv6Use;
}

export function createEgressPools(config: Config): EgressPools {
  const fallback: EgressEntry = { hostname: config.hostname };
  // A reload replaces the setting.
  const pools = derived(
    () => config.delivery.egress,
    (egress) => poolsOf(egress, config.hostname),
  );
  const entries = (pool: string): EgressEntry[] => pools().get(pool) ?? pools().get('default') ?? [fallback];
  return {
    poolOf: (region, useCase) =>
      config.regions.find(({ code }) => code === region)?.pools[useCase] ?? 'default',
    entry: (pool, connection) => {
      const list = entries(pool);
      return list[connection % list.length] ?? fallback;
    },
    ipv6Of: (pool) => {
      const list = entries(pool);
      if (list.some(({ address6 }) => address6 !== undefined)) return 'always';
      return list.some(({ address }) => address === undefined) ? 'fallback' : 'never';
    },
  };
}

function poolsOf(settings: Config['delivery']['egress'], hostname: string): Map<string, EgressEntry[]> {
  const pools = new Map<string, EgressEntry[]>();
  for (const entry of settings) {
    const egress: EgressEntry = {
      hostname: entry.hostname ?? hostname,
      ...(entry.address === undefined ? {} : { address: entry.address }),
      ...(entry.address6 === undefined ? {} : { address6: entry.address6 }),
    };
    for (const pool of entry.pools) pools.set(pool, [...(pools.get(pool) ?? []), egress]);
  }
  return pools;
}

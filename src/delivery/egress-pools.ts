import { type EgressSetting, type ProxyAddress, parseProxy } from '../config/egress-settings.ts';
import type { Config } from '../config/schema.ts';
import { memoized } from '../core/memoized.ts';
import type { Stream } from '../store/domains/domains.ts';
import type { TargetHost } from './worker/protocol.ts';

/*
 * Pools of source addresses. A region defines the pool of each use case; a pool has one or more entries. Which entry of a
 * pool sends a message is decided in source-address.ts.
 */

/**
 * An entry of `delivery.egress`: one source address. `publicAddress`: the address that receivers see, behind NAT. `proxy`:
 * the SOCKS5 proxy that has the addresses.
 */
export interface EgressEntry
  extends Partial<Pick<EgressSetting, 'address' | 'address6' | 'publicAddress' | 'warmup'>> {
  /** Null: `delivery.egress` is empty, and the system chooses the address. */
  name: string | null;
  hostname: string;
  proxy?: ProxyAddress | undefined;
}

export type WarmupSetting = NonNullable<EgressSetting['warmup']>;

/**
 * always: an entry of the pool has an IPv6 address. fallback: the system chooses the source address, and IPv6 is used
 * for hosts that have no IPv4 address. never: all entries have an IPv4 address only.
 */
export type Ipv6Use = 'always' | 'fallback' | 'never';

export type EgressPools = ReturnType<typeof createEgressPools>;

/**
 * Reads the configuration only, and again when a reload has replaced `delivery.egress`. While
 * `delivery.egress` is empty, every pool has one entry without a name.
 */
export function createEgressPools(config: Config) {
  const fallback: readonly EgressEntry[] = [{ name: null, hostname: config.hostname }];
  const pools = memoized(
    () => config.delivery.egress,
    (settings) => {
      const all = settings.map((setting) => toEntry(setting, config.hostname));
      const byName = new Map<string, EgressEntry[]>();
      for (const [index, entry] of all.entries())
        for (const pool of settings[index]?.pools ?? [])
          byName.set(pool, [...(byName.get(pool) ?? []), entry]);
      return { all, byName };
    },
  );

  /** The entries of a pool, of the pool `default` if it has none; at least one. */
  function entries(pool: string): readonly EgressEntry[] {
    const { byName } = pools();
    return byName.get(pool) ?? byName.get('default') ?? fallback;
  }

  return {
    entries,
    poolOf: (region: string, useCase: Stream): string =>
      config.regions.find(({ code }) => code === region)?.pools[useCase] ?? 'default',
    /** All entries with a name. */
    all: (): readonly EgressEntry[] => pools().all,
    /** The number of pools that mail of one account to one destination may leave through. */
    poolCount: (useCase: Stream): number => new Set(config.regions.map(({ pools }) => pools[useCase])).size,
    ipv6Of: (pool: string): Ipv6Use => {
      const list = entries(pool);
      if (list.some(({ address6 }) => address6 !== undefined)) return 'always';
      const isSystem = ({ address, proxy }: EgressEntry) => address === undefined && proxy === undefined;
      return list.some(isSystem) ? 'fallback' : 'never';
    },
  };
}

function toEntry({ hostname, proxy, ...setting }: EgressSetting, own: string): EgressEntry {
  const parsed = proxy === undefined ? null : parseProxy(proxy);
  return { ...setting, hostname: hostname ?? own, proxy: parsed ?? undefined };
}

/**
 * The entries that can reach one of the hosts: IPv6 requires `address6`; IPv4 an IPv4 address, an address that the
 * system chooses, or a proxy with an IPv4 address. All entries when none can.
 */
export function reachingEntries(
  entries: readonly EgressEntry[],
  hosts: readonly TargetHost[],
): readonly EgressEntry[] {
  if (entries.length === 1) return entries;
  const addresses = hosts.flatMap((host) => host.addresses);
  const hasIpv4 = addresses.some((address) => !address.includes(':'));
  const hasIpv6 = addresses.some((address) => address.includes(':'));
  const reaching = entries.filter(
    (entry) => (hasIpv4 && sendsIpv4(entry)) || (hasIpv6 && entry.address6 !== undefined),
  );
  return reaching.length > 0 ? reaching : entries;
}

/** Whether the entry sends over IPv4: a proxy with an IPv6 address alone does not. */
export function sendsIpv4(
  entry: Pick<EgressEntry, 'address' | 'address6' | 'publicAddress' | 'proxy'>,
): boolean {
  if (entry.proxy === undefined || entry.address !== undefined) return true;
  return entry.publicAddress !== undefined && !entry.publicAddress.includes(':');
}

/** The address that identifies the entry to an operator: as receivers see it, else its name. */
export function addressOf(
  entry: Pick<EgressEntry, 'name' | 'address' | 'address6' | 'publicAddress'>,
): string {
  return entry.publicAddress ?? entry.address ?? entry.address6 ?? entry.name ?? 'the system address';
}

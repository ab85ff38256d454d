import { isIPv6 } from 'node:net';
import { addressesOf, type DnsView } from '../verification/dns-view.ts';

/**
 * Which addresses our mail leaves from, as the world sees them: the set that a customer's SPF must let pass
 * and that our own `spf.<hostname>` lists.
 */
export interface EgressSetting {
  address?: string | undefined;
  address6?: string | undefined;
  /** What the world sees behind NAT. */
  publicAddress?: string | undefined;
  /** Its name in EHLO, when not the platform's. */
  hostname?: string | undefined;
  pools: readonly string[];
}

export type SecondarySetting =
  | { type: 'builtin'; pool: string }
  | { type: 'relay'; spfInclude?: string | undefined };

export interface EgressSet {
  addresses: string[];
  /** Set when an address could not be found out just now: nothing may be concluded from the rest alone. */
  unknown: string | null;
}

/**
 * The addresses of the entries of `pool`, of all with null. Per entry (contract §13.2): its public address,
 * else its own ones, else those of the platform's host name. A public address stands in for the entry's
 * own address of the same family only: an entry behind IPv4 NAT still sends IPv6 from its `address6`. Empty
 * when nothing is known.
 */
export async function egressSet(
  view: DnsView,
  platform: { hostname: string; egress: readonly EgressSetting[] },
  pool: string | null,
): Promise<EgressSet> {
  const own = platform.egress.filter((entry) => pool === null || entry.pools.includes(pool));
  // No entry at all is one entry that the system chooses the address of.
  const entries = own.length > 0 ? own.map(configuredAddresses) : [[]];
  const addresses = new Set(entries.flat());
  if (entries.every((known) => known.length > 0)) return { addresses: [...addresses], unknown: null };
  const host = await addressesOf(view, platform.hostname);
  if (host.kind === 'records') for (const address of host.records) addresses.add(address);
  return { addresses: [...addresses], unknown: host.kind === 'unknown' ? host.why : null };
}

/** Without asking anybody; empty when the system chooses. */
export function configuredAddresses(entry: EgressSetting): string[] {
  const { address, address6, publicAddress } = entry;
  if (publicAddress === undefined) return [address, address6].filter((one) => one !== undefined);
  const other = isIPv6(publicAddress) ? address : address6;
  return other === undefined ? [publicAddress] : [publicAddress, other];
}

import { isIPv6 } from 'node:net';
import type { Config } from '../../config/schema.ts';
import { addressesOf, type DnsView } from '../../dns/dns-view.ts';

/*
 * The addresses that mail is sent from, as receivers see them: the SPF of a domain must pass for them, and
 * `spf.<hostname>` lists them.
 */

/**
 * `publicAddress`: the address that receivers see, outside of the NAT. `hostname`: the name in EHLO, if not the
 * platform's.
 */
export type EgressAddressSetting = Pick<
  Config['delivery']['egress'][number],
  'address' | 'address6' | 'publicAddress' | 'hostname' | 'pools'
>;

export type SecondarySetting =
  | { type: 'builtin'; pool: string }
  | { type: 'relay'; spfInclude?: string | undefined };

export interface EgressSet {
  addresses: string[];
  /** Why an address could not be looked up; the other addresses alone are not conclusive. Null: all are known. */
  unknown: string | null;
}

/**
 * The addresses of the entries of `pool`, or of all entries (null). For each entry: its public address, else its own
 * addresses, else those of the platform's host name. A public address replaces only the entry's address of the same
 * family: an entry behind IPv4 NAT sends IPv6 from its `address6`. Empty when no address is known.
 */
export async function egressSet(
  view: DnsView,
  platform: { hostname: string; egress: readonly EgressAddressSetting[] },
  pool: string | null,
): Promise<EgressSet> {
  const own = platform.egress.filter((entry) => pool === null || entry.pools.includes(pool));
  // Without entries the system chooses the address.
  const entries = own.length > 0 ? own.map(configuredAddresses) : [[]];
  const addresses = new Set(entries.flat());
  if (entries.every((known) => known.length > 0)) return { addresses: [...addresses], unknown: null };
  const host = await addressesOf(view, platform.hostname);
  if (host.kind === 'records') for (const address of host.records) addresses.add(address);
  return { addresses: [...addresses], unknown: host.kind === 'unknown' ? host.reason : null };
}

/** The addresses of an entry that the configuration contains; empty when the system chooses the address. */
export function configuredAddresses(entry: EgressAddressSetting): string[] {
  const { address, address6, publicAddress } = entry;
  if (publicAddress === undefined) return [address, address6].filter((one) => one !== undefined);
  const other = isIPv6(publicAddress) ? address : address6;
  return other === undefined ? [publicAddress] : [publicAddress, other];
}

/**
 * The addresses of the first entry with an address that sends under the platform's host name; empty when there is none.
 * Those of further entries are not added: they may be proxies, which receive no mail for the host name.
 */
export function ownAddresses({
  hostname,
  egress,
}: {
  hostname: string;
  egress: readonly EgressAddressSetting[];
}): string[] {
  const own = egress.filter((entry) => entry.hostname === undefined || entry.hostname === hostname);
  return own.map(configuredAddresses).find((addresses) => addresses.length > 0) ?? [];
}

/** An address that mail is sent from, with the name in EHLO. */
export interface SourceAddress {
  address: string;
  name: string;
}

/** The source addresses that are known: the configured ones, else those of the platform's host name. */
export function sourceAddresses(
  { hostname, egress }: { hostname: string; egress: readonly EgressAddressSetting[] },
  hostAddresses: readonly string[],
): SourceAddress[] {
  const configured = egress.flatMap((entry) =>
    configuredAddresses(entry).map((address) => [address, entry.hostname ?? hostname] as const),
  );
  const known =
    configured.length > 0 ? configured : hostAddresses.map((address) => [address, hostname] as const);
  return [...new Map(known)].map(([address, name]) => ({ address, name }));
}

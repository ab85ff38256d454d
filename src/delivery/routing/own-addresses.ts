import { DnsError } from '../../dns/dns-error.ts';
import type { Resolver } from '../../dns/resolver.ts';

/**
 * The public addresses behind NAT at which this server receives mail: those of `delivery.egress` to which its own name
 * resolves. Behind the others, and behind all of them without an MX listener, another mail server may listen.
 */
export interface OwnAddresses {
  /** Those of the addresses that are ours; `unknown`: one may be, and our name cannot be looked up now. */
  among(addresses: readonly string[]): Promise<ReadonlySet<string> | 'unknown'>;
}

export interface OwnAddressesDeps {
  resolver: Resolver;
  /** Read at each use, because a reload changes it. */
  readonly hostname: string;
  /** `publicAddress` of the entries; empty without an MX listener. Read at each use, because a reload changes it. */
  readonly publicAddresses: readonly string[];
}

const NONE: ReadonlySet<string> = new Set();

/**
 * Keeps no state. `among` looks up the addresses of `hostname` only if one of the addresses is in `publicAddresses`; it
 * rejects only with an internal error of the resolver.
 */
export function createOwnAddresses(deps: OwnAddressesDeps): OwnAddresses {
  const { resolver } = deps;

  /** The resolver returns addresses in one notation. */
  async function addressesOfHostname(): Promise<readonly string[]> {
    const families = [() => resolver.a(deps.hostname), () => resolver.aaaa(deps.hostname)];
    const found = await Promise.all(families.map(addressesFrom));
    return found.flat();
  }

  return {
    among: async (addresses) => {
      const candidates = addresses.filter((address) => deps.publicAddresses.includes(address));
      if (candidates.length === 0) return NONE;
      try {
        const ours = await addressesOfHostname();
        return new Set(candidates.filter((address) => ours.includes(address)));
      } catch (error) {
        if (error instanceof DnsError) return 'unknown';
        throw error;
      }
    },
  };
}

/** Empty when there is no such record; throws when that is not known. */
async function addressesFrom(query: () => Promise<{ records: string[] }>): Promise<readonly string[]> {
  try {
    return (await query()).records;
  } catch (error) {
    if (error instanceof DnsError && error.absent) return [];
    throw error;
  }
}

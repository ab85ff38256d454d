import { covers, DEFAULT_PROFILE_NAME, type ShapingProfile } from '../../config/shaping.ts';
import type { TargetHost } from '../worker/protocol.ts';

/** Finds the shaping profile of a destination. */
export interface Profiles {
  /** The first profile of which a pattern matches an MX host or the destination, else the default profile. */
  of(destination: string, hosts: readonly TargetHost[]): FoundProfile;
  /**
   * Whose refusals of a source address count together: the profile of the destination or, where each customer decides
   * (`shared = false`), its MX hosts. Null: no profile covers the destination, and the provider of its hosts is meant.
   */
  receiverOf(destination: string, hosts: readonly TargetHost[]): string | null;
  default(): ShapingProfile;
}

export interface FoundProfile {
  profile: ShapingProfile;
  /**
   * Whether the destination or all of its hosts match. Anyone can name a provider's host in an MX record next to another one, whose
   * replies must not count for the provider.
   */
  isWhole: boolean;
  /** Whether the operator named the destination, which its owner cannot change by DNS records. */
  isNamed: boolean;
}

/** `shaping`: read at each use, as a reload replaces it; the last profile is the default. */
export function createProfiles(options: { readonly shaping: readonly ShapingProfile[] }): Profiles {
  /** Routes are cached, so that the same lists come again with every message. */
  let found = new WeakMap<readonly TargetHost[], { destination: string; result: FoundProfile }>();
  let searched = options.shaping;

  const defaultProfile = () => {
    const last = options.shaping.at(-1);
    if (last?.name !== DEFAULT_PROFILE_NAME) throw new Error('the shaping profiles have no default');
    return last;
  };

  function of(destination: string, hosts: readonly TargetHost[]): FoundProfile {
    if (searched !== options.shaping) {
      searched = options.shaping;
      found = new WeakMap();
    }
    const known = found.get(hosts);
    if (known?.destination === destination) return known.result;
    const domain = destination.toLowerCase();
    const names = hosts.map(({ name }) => name.toLowerCase());
    const profile =
      searched.find((one) => covers(one, domain) || names.some((name) => covers(one, name))) ??
      defaultProfile();
    const coversDomain = covers(profile, domain);
    const result = {
      profile,
      isWhole: coversDomain || names.every((name) => covers(profile, name)),
      isNamed: coversDomain && profile.origin === 'configuration',
    };
    found.set(hosts, { destination, result });
    return result;
  }

  return {
    of,
    receiverOf: (destination, hosts) => {
      const { profile, isWhole } = of(destination, hosts);
      if (!isWhole || profile.match.length === 0) return null;
      return profile.shared ? profile.name : hostNames(hosts);
    },
    default: defaultProfile,
  };
}

/** The names of the hosts in one text, whatever their order. */
export function hostNames(hosts: readonly TargetHost[]): string {
  return hosts
    .map(({ name }) => name)
    .toSorted()
    .join(',');
}

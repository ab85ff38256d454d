import { DEFAULT_PROFILE_NAME, type ShapingProfile } from '../../config/shaping.ts';
import type { TargetHost } from '../worker/protocol.ts';

/** Finds the shaping profile of a destination. */
export interface Profiles {
  /** The first profile of which a pattern matches an MX host or the destination, else the default profile. */
  of(destination: string, hosts: readonly TargetHost[]): ShapingProfile;
  default(): ShapingProfile;
}

/** `shaping`: read at each use, as a reload replaces it; the last profile is the default. */
export function createProfiles(options: { readonly shaping: readonly ShapingProfile[] }): Profiles {
  /** Routes are cached, so that the same lists come again with every message. */
  let found = new WeakMap<readonly TargetHost[], { destination: string; profile: ShapingProfile }>();
  let searched = options.shaping;

  const defaultProfile = () => {
    const last = options.shaping.at(-1);
    if (last?.name !== DEFAULT_PROFILE_NAME) throw new Error('the shaping profiles have no default');
    return last;
  };

  return {
    of: (destination, hosts) => {
      if (searched !== options.shaping) {
        searched = options.shaping;
        found = new WeakMap();
      }
      const known = found.get(hosts);
      if (known?.destination === destination) return known.profile;
      const names = [destination, ...hosts.map(({ name }) => name)].map((name) => name.toLowerCase());
      const matched = searched.find(({ match }) =>
        match.some((pattern) => names.some((name) => matches(pattern, name))),
      );
      const profile = matched ?? defaultProfile();
      found.set(hosts, { destination, profile });
      return profile;
    },
    default: defaultProfile,
  };
}

function matches(pattern: string, name: string): boolean {
  return pattern.startsWith('*.') ? name.endsWith(pattern.slice(1)) : name === pattern;
}

import type { DeliveryRoute, ShapingProfile } from '../../config/setting-types.ts';
import { type Clock, MINUTE } from '../../core/clock.ts';
import type { TargetHost } from '../worker/protocol.ts';
import { createSite, type Site, type SiteProfile } from './site.ts';

/** The sites with mail. Destinations with the same hosts or the same shaping profile share a site. */
export interface Sites {
  /** The site of a destination's hosts in an egress pool; created when there is none. */
  of(destination: string, hosts: TargetHost[], route: DeliveryRoute | null, pool: string): Site;
  find(destination: string, hosts: TargetHost[], route: DeliveryRoute | null, pool: string): Site | null;
  all(): Iterable<Site>;
  /** Removes sites that have been unused for a long time. */
  sweep(): void;
}

export interface SitesOptions {
  /** Monotonic. */
  clock: Clock;
  /** Read at each use: a reload replaces them. */
  readonly shaping: ShapingProfile[];
  readonly firstSuspensionMs: number;
  /** Whether the operator has paused a site. Default: never. */
  isPaused?(site: { key: string; pool: string }): boolean;
}

const DEFAULT_PROFILE: SiteProfile = {
  connections: 10,
  messagesPerConnection: 100,
  idleMs: MINUTE,
  tls: 'opportunistic',
};

export function createSites(options: SitesOptions): Sites {
  const { clock } = options;
  const sites = new Map<string, Site>();
  let created = 0;

  function identify(destination: string, hosts: TargetHost[], route: DeliveryRoute | null, pool: string) {
    const shaped = route === null ? findProfile(options.shaping, destination, hosts) : null;
    return { shaped, key: `${shaped?.match ?? siteName(hosts, route)} via ${pool}` };
  }

  return {
    of: (destination, hosts, route, pool) => {
      const { shaped, key } = identify(destination, hosts, route, pool);
      let site = sites.get(key);
      const profile = shaped === null ? defaultProfile(route) : toSiteProfile(shaped);
      if (site === undefined) {
        const { firstSuspensionMs } = options;
        const isPaused = () => options.isPaused?.({ key, pool }) === true;
        site = createSite({ key, number: created++, pool, profile, clock, firstSuspensionMs, isPaused });
        sites.set(key, site);
      } else if (!isSameProfile(site.profile, profile)) {
        site.configure(profile);
      }
      site.touch();
      return site;
    },
    find: (...where) => sites.get(identify(...where).key) ?? null,
    all: () => sites.values(),
    sweep: () => {
      for (const [key, site] of sites) if (site.isObsolete()) sites.delete(key);
    },
  };
}

function siteName(hosts: TargetHost[], route: DeliveryRoute | null): string {
  if (route !== null) return `route ${route.host}:${route.port}`;
  return hosts
    .map(({ name }) => name)
    .sort()
    .join(',');
}

/** The first profile whose pattern matches an MX host or the destination; `*.` matches any depth below. */
function findProfile(
  shaping: ShapingProfile[],
  destination: string,
  hosts: TargetHost[],
): ShapingProfile | null {
  const names = [destination, ...hosts.map(({ name }) => name)];
  return shaping.find(({ match }) => names.some((name) => matches(match.toLowerCase(), name))) ?? null;
}

function matches(pattern: string, name: string): boolean {
  return pattern.startsWith('*.') ? name.endsWith(pattern.slice(1)) : name === pattern;
}

function toSiteProfile(profile: ShapingProfile): SiteProfile {
  const { connections, messagesPerConnection, idleSeconds, tls } = profile;
  return { connections, messagesPerConnection, idleMs: idleSeconds * 1000, tls };
}

function isSameProfile(a: SiteProfile, b: SiteProfile): boolean {
  return (
    a.connections === b.connections &&
    a.messagesPerConnection === b.messagesPerConnection &&
    a.idleMs === b.idleMs &&
    a.tls === b.tls
  );
}

function defaultProfile(route: DeliveryRoute | null): SiteProfile {
  return route === null ? DEFAULT_PROFILE : { ...DEFAULT_PROFILE, tls: route.tls };
}

import type { DeliveryRoute } from '../../config/setting-types.ts';
import type { ShapingProfile } from '../../config/shaping.ts';
import type { Clock } from '../../core/clock.ts';
import type { HostAnswers } from '../shaping/host-answers.ts';
import { createProfiles } from '../shaping/profiles.ts';
import type { SiteMemory } from '../shaping/site-limits.ts';
import type { TargetHost } from '../worker/protocol.ts';
import { createSite } from './create-site.ts';
import type { OpenConnections } from './open-connections.ts';
import type { Site, SiteProfile } from './site.ts';
import { createWaitingIndex, type WaitingIndex } from './waiting-keys.ts';

/**
 * The sites with mail. Destinations with the same hosts share a site, and so do those whose hosts all belong to one shaping
 * profile, unless the best host was tried and has never replied.
 */
export interface Sites {
  /** The site of a destination's hosts in an egress pool; created when there is none. */
  of(destination: string, hosts: TargetHost[], route: DeliveryRoute | null, pool: string): Site;
  /** Like `of`, without creating a site; null: the site is not in memory. */
  find(destination: string, hosts: TargetHost[], route: DeliveryRoute | null, pool: string): Site | null;
  all(): Iterable<Site>;
  /** The keys that wait at the sites. */
  readonly waiting: Pick<WaitingIndex, 'since' | 'delete'>;
  /** Removes the site if it is obsolete (unused for a long time); returns whether it was. */
  removeObsolete(site: Site): boolean;
}

export interface SitesOptions {
  /** Monotonic. */
  clock: Clock;
  /** The system clock. Default: `clock`. */
  wallClock?: Clock;
  /** Read at each use: a reload replaces them. */
  readonly shaping: readonly ShapingProfile[];
  readonly firstSuspensionMs: number;
  /** Connections of a new site, see `SuspensionOptions`. */
  readonly initialConnections?: number;
  /** The stored state of a site that is created; null: none. */
  memoryOf?(key: string): SiteMemory | null;
  /** Whether the operator has paused a site. Default: never. */
  isPaused?(site: { key: string; pool: string }): boolean;
  /** Default: no limit. */
  readonly openConnections?: OpenConnections;
  /** Default: nothing is known about any host. */
  readonly hostAnswers?: Pick<HostAnswers, 'isSilent'>;
}

/**
 * Has no sites at first; a site is numbered in the order of creation. `removeObsolete` alone removes sites: those without mail
 * that are neither suspended nor limited and were not used for 10 minutes.
 */
export function createSites(options: SitesOptions): Sites {
  const { clock, wallClock } = options;
  const profiles = createProfiles(options);
  const sites = new Map<string, Site>();
  const waiting = createWaitingIndex(clock);
  let created = 0;

  function identify(destination: string, hosts: TargetHost[], route: DeliveryRoute | null, pool: string) {
    // A route has no MX hosts; a profile does not apply to it.
    const { profile, isWhole } =
      route === null ? profiles.of(destination, hosts) : { profile: profiles.default(), isWhole: false };
    const isShared = isWhole && profile.match.length > 0 && profile.shared && !isSilent(hosts[0]);
    return { profile, isShared, key: `${isShared ? profile.name : siteName(hosts, route)} via ${pool}` };
  }

  const isSilent = (host: TargetHost | undefined) =>
    host !== undefined && options.hostAnswers?.isSilent(host.name) === true;

  return {
    of: (destination, hosts, route, pool) => {
      const { profile: shaping, isShared, key } = identify(destination, hosts, route, pool);
      let site = sites.get(key);
      const profile = toSiteProfile(shaping, route);
      if (site === undefined) {
        const { firstSuspensionMs } = options;
        const memory = options.memoryOf?.(key) ?? undefined;
        const number = created++;
        const isPaused = () => options.isPaused?.({ key, pool }) === true;
        site = createSite({
          key,
          number,
          pool,
          isShared,
          profile,
          clock,
          wallClock,
          firstSuspensionMs,
          memory,
          initialConnections: options.initialConnections,
          isPaused,
          waiting,
          openConnections: options.openConnections,
        });
        sites.set(key, site);
      } else if (!isSameProfile(site.profile(), profile)) {
        site.configure(profile);
      }
      site.touch();
      return site;
    },
    find: (...where) => sites.get(identify(...where).key) ?? null,
    all: () => sites.values(),
    waiting,
    removeObsolete: (site) => site.isObsolete() && sites.delete(site.key),
  };
}

function siteName(hosts: TargetHost[], route: DeliveryRoute | null): string {
  if (route !== null) return `route ${route.host}:${route.port}`;
  return hosts
    .map(({ name }) => name)
    .sort()
    .join(',');
}

function toSiteProfile(profile: ShapingProfile, route: DeliveryRoute | null): SiteProfile {
  const { connections, messagesPerConnection, perSecond, idleSeconds, tls, chunking } = profile;
  return {
    connections,
    messagesPerConnection,
    perSecond,
    idleMs: idleSeconds * 1000,
    tls: route?.tls ?? tls,
    chunking,
  };
}

function isSameProfile(a: SiteProfile, b: SiteProfile): boolean {
  return (
    a.connections === b.connections &&
    a.messagesPerConnection === b.messagesPerConnection &&
    a.perSecond === b.perSecond &&
    a.idleMs === b.idleMs &&
    a.tls === b.tls &&
    a.chunking === b.chunking
  );
}

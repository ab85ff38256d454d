import type { DeliveryRoute } from '../../config/setting-types.ts';
import type { ShapingProfile } from '../../config/shaping.ts';
import { type Clock, SECOND } from '../../core/clock.ts';
import type { SiteMemory } from '../shaping/limiter.ts';
import { createProfiles, type HostAnswers, hostNames } from '../shaping/profiles.ts';
import type { TargetHost } from '../worker/protocol.ts';
import { createSite, type Site, type SiteProfile } from './site.ts';
import type { OpenConnections } from './slots.ts';
import { createWaitingIndex } from './waiting-keys.ts';

export type Sites = ReturnType<typeof createSites>;

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

/** A site needs some 20 KB. */
export const MAX_SITES = 10_000;
/** Created for mail of one account, which chooses the destinations. */
export const MAX_SITES_OF_ACCOUNT = 2500;
/** Above this share of either maximum, sites without mail are removed soon. Their limits and suspensions are stored. */
const CROWDED_SHARE = 0.5;
const CROWDED_UNUSED_MS = SECOND;

/**
 * The sites with mail. Destinations with the same hosts share a site, and so do those whose hosts all belong to one shaping
 * profile, unless the best host was tried and has never replied.
 *
 * Has no sites at first; a site is numbered in the order of creation. `removeObsolete` alone removes sites: those without mail
 * that are neither suspended nor limited and were not used for 10 minutes, and where there are many all without mail.
 */
export function createSites(options: SitesOptions) {
  const { clock, wallClock } = options;
  const profiles = createProfiles(options);
  const sites = new Map<string, Site>();
  const waiting = createWaitingIndex(clock);
  let created = 0;
  /** For whose mail a site was created, and how many there are of each account. */
  const creators = new Map<Site, string>();
  const counts = new Map<string, number>();

  const isBelow = (accountId: string, share: number) =>
    sites.size < MAX_SITES * share && (counts.get(accountId) ?? 0) < MAX_SITES_OF_ACCOUNT * share;

  function remove(site: Site): void {
    const accountId = creators.get(site) ?? '';
    sites.delete(site.key);
    creators.delete(site);
    const left = (counts.get(accountId) ?? 0) - 1;
    if (left > 0) counts.set(accountId, left);
    else counts.delete(accountId);
  }

  function identify(destination: string, hosts: TargetHost[], route: DeliveryRoute | null, pool: string) {
    // A route has no MX hosts; a profile does not apply to it.
    const { profile, isWhole, isNamed } =
      route === null
        ? profiles.of(destination, hosts)
        : { profile: profiles.default(), isWhole: false, isNamed: false };
    const isOneSite =
      isWhole && profile.match.length > 0 && profile.shared && (isNamed || !isSilent(hosts[0]));
    const key = `${isOneSite ? profile.name : siteName(hosts, route)} via ${pool}`;
    return { profile, isShared: isOneSite && !isNamed, key };
  }

  const isSilent = (host: TargetHost | undefined) =>
    host !== undefined && options.hostAnswers?.isSilent(host.name) === true;

  return {
    /**
     * The site of a destination's hosts in an egress pool. If there is none it is created, for mail of the account: call
     * `mayCreate` first.
     */
    of: (
      destination: string,
      hosts: TargetHost[],
      route: DeliveryRoute | null,
      pool: string,
      accountId = '',
    ): Site => {
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
        creators.set(site, accountId);
        counts.set(accountId, (counts.get(accountId) ?? 0) + 1);
      } else if (!isSameProfile(site.profile(), profile)) {
        site.configure(profile);
      }
      site.touch();
      return site;
    },
    /** Like `of`, without creating a site; null: the site is not in memory. */
    find: (...where: Parameters<typeof identify>): Site | null => sites.get(identify(...where).key) ?? null,
    all: (): Iterable<Site> => sites.values(),
    /** See `Profiles.receiverOf`. */
    receiverOf: profiles.receiverOf,
    /** The keys that wait at the sites. */
    waiting,
    /** Whether another site may be created for mail of the account. */
    mayCreate: (accountId: string): boolean => isBelow(accountId, 1),
    /** Removes the site if it is obsolete: unused for a long time, or for a second where there are many. Returns whether it was. */
    removeObsolete: (site: Site): boolean => {
      const isCrowded = !isBelow(creators.get(site) ?? '', CROWDED_SHARE);
      if (!site.isObsolete() && !(isCrowded && site.isUnused(CROWDED_UNUSED_MS))) return false;
      remove(site);
      return true;
    },
  };
}

function siteName(hosts: TargetHost[], route: DeliveryRoute | null): string {
  if (route !== null) return `route ${route.host}:${route.port}`;
  return hostNames(hosts);
}

function toSiteProfile(profile: ShapingProfile, route: DeliveryRoute | null): SiteProfile {
  const { connections, messagesPerConnection, perSecond, idleSeconds, tls, chunking, addressPause } = profile;
  return {
    connections,
    messagesPerConnection,
    perSecond,
    idleMs: idleSeconds * 1000,
    tls: route?.tls ?? tls,
    chunking,
    addressPauseMs: addressPause,
  };
}

function isSameProfile(a: SiteProfile, b: SiteProfile): boolean {
  return (
    a.connections === b.connections &&
    a.messagesPerConnection === b.messagesPerConnection &&
    a.perSecond === b.perSecond &&
    a.idleMs === b.idleMs &&
    a.tls === b.tls &&
    a.chunking === b.chunking &&
    a.addressPauseMs === b.addressPauseMs
  );
}

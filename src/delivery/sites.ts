import type { Route, ShapingProfile } from '../config/schema.ts';
import { type Clock, MINUTE, SECOND } from '../core/clock.ts';
import type { QueuedMessage, Stream } from '../store/queue.ts';
import type { TargetHost, TlsMode } from './worker/protocol.ts';

/**
 * Sites: the set of MX hosts behind a destination, times an egress pool. Limits belong to the site, because
 * a thousand domains may share one mailbox provider. A site has as many slots as it may have connections;
 * a message holds a slot while it is sent, and a worker keeps at most one connection for each.
 */
export interface Site {
  readonly key: string;
  readonly pool: string;
  readonly profile: Profile;
  /** Taken from the queue and waiting for a slot: transactional, marketing. */
  readonly backlog: [Assignment[], Assignment[]];
  /** Being taken at the moment, by lane: room that is spoken for. */
  readonly taking: [number, number];
  /** Streams that have more in the queue than the site had room for, the longest waiting first. */
  readonly waiting: Map<string, { lane: 0 | 1; stream: Stream }>;
  freeSlots: number[];
  inFlight: number;
  /** Messages that were through in the second that began at `since` (epoch ms), and in the one before. */
  pace: { since: number; now: number; before: number };
  /** Whole-session failures in a row. */
  failures: number;
  suspendedUntil: number;
  usedAt: number;
  readonly number: number;
}

/** A message that was taken, with where it goes. */
export interface Assignment {
  message: QueuedMessage;
  hosts: TargetHost[];
  route: Route | null;
  /** Epoch ms: when it was last asked whether it may go. */
  takenAt: number;
}

export interface Profile {
  connections: number;
  messagesPerConnection: number;
  idleMs: number;
  tls: TlsMode;
}

const DEFAULT_PROFILE: Profile = {
  connections: 10,
  messagesPerConnection: 100,
  idleMs: MINUTE,
  tls: 'opportunistic',
};

/**
 * How many messages may wait at a site for each of its connections, at most: enough to hide the queue's commit.
 * A site takes no more ahead than it got through in a second, so that what is taken goes before anything changes
 * that is asked when it is taken.
 */
const AHEAD = 20;
const SUSPEND_AFTER = 2;
const LONGEST_SUSPENSION = 30 * MINUTE;
/** A site with nothing to do is forgotten after this. */
const FORGET_AFTER = 10 * MINUTE;

export interface Sites {
  /** The site of a destination's hosts, made if need be. */
  of(destination: string, hosts: TargetHost[], route: Route | null, pool: string): Site;
  /** How many messages of a lane may wait at the site for a slot. */
  ahead(site: Site): number;
  /** How many more messages of a lane the site takes now. */
  room(site: Site, lane: 0 | 1): number;
  /** Takes a slot and the next message for it; null when there is no slot, no message, or it is suspended. */
  next(site: Site): { slot: number; assignment: Assignment } | null;
  free(site: Site, slot: number): void;
  /** A session with the site came to a verdict. */
  answered(site: Site): void;
  /** No host of the site could be talked to. Returns how long it is left alone from now, 0: not yet. */
  unreachable(site: Site): number;
  suspended(site: Site): boolean;
  all(): Iterable<Site>;
  /** Forgets idle ones. */
  sweep(): void;
}

export interface SiteSettings {
  clock: Clock;
  shaping: ShapingProfile[];
  /** First suspension, ms; later ones double. */
  firstSuspension: number;
}

export function createSites(settings: SiteSettings): Sites {
  const { clock, shaping } = settings;
  const sites = new Map<string, Site>();
  let made = 0;

  function make(key: string, pool: string, profile: Profile): Site {
    return {
      key,
      pool,
      profile,
      backlog: [[], []],
      taking: [0, 0],
      waiting: new Map(),
      freeSlots: Array.from({ length: profile.connections }, (_, n) => profile.connections - 1 - n),
      inFlight: 0,
      // Of a new one the best is hoped.
      pace: { since: clock.now(), now: 0, before: profile.connections * AHEAD },
      failures: 0,
      suspendedUntil: 0,
      usedAt: clock.now(),
      number: made++,
    };
  }

  /** The counts as they are at this moment. */
  function paceOf(site: Site): Site['pace'] {
    const seconds = Math.floor((clock.now() - site.pace.since) / SECOND);
    if (seconds === 0) return site.pace;
    const before = seconds === 1 ? site.pace.now : 0;
    site.pace = { since: site.pace.since + seconds * SECOND, now: 0, before };
    return site.pace;
  }

  function ahead(site: Site): number {
    const { connections } = site.profile;
    const { now, before } = paceOf(site);
    return Math.min(Math.max(now, before, connections), connections * AHEAD);
  }

  const suspended = (site: Site) => site.suspendedUntil > clock.now();

  return {
    suspended,
    of: (destination, hosts, route, pool) => {
      const matching = route === null ? profileFor(shaping, destination, hosts) : null;
      const name = matching?.match ?? siteName(hosts, route);
      const key = `${name} via ${pool}`;
      let site = sites.get(key);
      if (site === undefined) {
        site = make(key, pool, matching === null ? withRoute(route) : profileOf(matching));
        sites.set(key, site);
      }
      site.usedAt = clock.now();
      return site;
    },
    ahead,
    room: (site, lane) => (suspended(site) ? 0 : ahead(site) - site.backlog[lane].length),
    next: (site) => {
      if (site.freeSlots.length === 0 || suspended(site)) return null;
      const assignment = site.backlog[0].shift() ?? site.backlog[1].shift();
      if (assignment === undefined) return null;
      // The slot freed last: its connection is the warmest, and idle ones beyond the need can close.
      const slot = site.freeSlots.pop() ?? 0;
      site.inFlight++;
      return { slot, assignment };
    },
    free: (site, slot) => {
      site.inFlight--;
      paceOf(site).now++;
      site.freeSlots.push(slot);
      site.usedAt = clock.now();
    },
    answered: (site) => {
      site.failures = 0;
      site.suspendedUntil = 0;
    },
    unreachable: (site) => {
      site.failures++;
      if (site.failures < SUSPEND_AFTER) return 0;
      // Sessions that were under way when it was suspended report one by one: they count once.
      if (suspended(site)) return site.suspendedUntil - clock.now();
      const wait = Math.min(
        settings.firstSuspension * 2 ** Math.min(site.failures - SUSPEND_AFTER, 16),
        LONGEST_SUSPENSION,
      );
      site.suspendedUntil = clock.now() + wait;
      return wait;
    },
    all: () => sites.values(),
    sweep: () => {
      for (const [key, site] of sites) {
        const idle =
          site.inFlight === 0 &&
          site.taking.every((n) => n === 0) &&
          site.waiting.size === 0 &&
          site.backlog.every((list) => list.length === 0);
        if (idle && !suspended(site) && clock.now() - site.usedAt > FORGET_AFTER) sites.delete(key);
      }
    },
  };
}

function siteName(hosts: TargetHost[], route: Route | null): string {
  if (route !== null) return `route ${route.host}:${route.port}`;
  return hosts
    .map(({ name }) => name)
    .sort()
    .join(',');
}

/** A profile whose pattern matches an MX host or the destination; `*.` matches any depth below. */
function profileFor(
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

function profileOf(profile: ShapingProfile): Profile {
  const { connections, messagesPerConnection, idleSeconds, tls } = profile;
  return { connections, messagesPerConnection, idleMs: idleSeconds * 1000, tls };
}

function withRoute(route: Route | null): Profile {
  return route === null ? DEFAULT_PROFILE : { ...DEFAULT_PROFILE, tls: route.tls };
}

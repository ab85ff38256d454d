import type { Route, ShapingProfile } from '../config/schema.ts';
import { type Clock, MINUTE, SECOND } from '../core/clock.ts';
import type { ReadyMessage, Stream } from '../store/messages/queue.ts';
import type { TargetHost, TlsMode } from './worker/protocol.ts';

/**
 * Sites: the set of MX hosts behind a destination, times an egress pool. Limits belong to the site, because
 * a thousand domains may share one mailbox provider. A site has as many slots as it may have connections;
 * a message holds a slot while it is sent, and a worker keeps at most one connection for each.
 *
 * A site whose hosts cannot be talked to is suspended, longer each time. Then one connection probes it; once
 * that is answered, the number of connections doubles with every further answer.
 */
export interface Site {
  readonly key: string;
  readonly pool: string;
  readonly profile: Profile;
  /** Waiting in memory for a slot: transactional, marketing. */
  readonly backlog: [Assignment[], Assignment[]];
  /** Leased already, so that the next free slot need not wait for a commit: transactional, marketing. */
  readonly armed: [Assignment[], Assignment[]];
  /** Being leased for that. */
  arming: number;
  /** Sessions in a row that came to a verdict. */
  answers: number;
  /** Streams that have more in the queue than the site had room for, the longest waiting first. */
  readonly waiting: Map<string, { lane: 0 | 1; stream: Stream }>;
  freeSlots: number[];
  inFlight: number;
  /** Messages that were through in the second that began at `since`, and in the one before. */
  pace: { since: number; now: number; before: number };
  /** Whole-session failures in a row. */
  failures: number;
  /** Suspensions so far: a session that began before the latest one is part of what it was suspended for. */
  era: number;
  /** Suspensions in a row without an answer between. */
  suspensions: number;
  suspendedUntil: number;
  /** Connections allowed since the last suspension ended; at the profile's number the site has recovered. */
  allowed: number;
  /** Sessions under way that began since then. */
  probes: number;
  usedAt: number;
  readonly number: number;
}

/** A message that waits in memory, with where it goes. */
export interface Assignment {
  message: ReadyMessage;
  hosts: TargetHost[];
  route: Route | null;
  /** When it was read from the queue (monotonic). */
  takenAt: number;
}

/** A slot that a message holds while it is sent. */
export interface Hold {
  site: Site;
  slot: number;
  /** The site's era when it began. */
  era: number;
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
 * How many messages may wait in memory for each of a site's connections, at most: enough to hide the reading of
 * the queue. A site reads no more ahead than it got through in a second.
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
  /**
   * Takes a slot and the first message that `admits` lets through, transactional before marketing. `full`: the
   * site has no slot for now; `none`: no message waits; `refused`: none of those that wait was let through.
   */
  next(site: Site, admits: (assignment: Assignment) => boolean): Next | 'full' | 'none' | 'refused';
  /**
   * The next message to lease before a slot is free for it; null: none. Only sites that are healthy and fast get
   * any, one for each connection: elsewhere mail would be shown as being sent while it waits.
   */
  toArm(site: Site, admits: (assignment: Assignment) => boolean): Assignment | null;
  /** The message has left its slot. */
  free(hold: Hold): void;
  /** A session with the site came to a verdict. */
  answered(hold: Hold): void;
  /** No host of the site could be talked to. Returns how long the site is suspended from now because of it, 0: not. */
  unreachable(hold: Hold): number;
  suspended(site: Site): boolean;
  /** Milliseconds until a suspended site is probed, 0: it is not suspended. */
  wait(site: Site): number;
  /** The site of a destination's hosts if there is one. */
  find(destination: string, hosts: TargetHost[], route: Route | null, pool: string): Site | null;
  all(): Iterable<Site>;
  /** Forgets idle ones. */
  sweep(): void;
}

export interface Next {
  hold: Hold;
  assignment: Assignment;
  /** It is leased already. */
  armed: boolean;
}

export interface SiteSettings {
  /** Monotonic: a suspension must not last longer because the clock was set. */
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
      armed: [[], []],
      arming: 0,
      answers: 0,
      waiting: new Map(),
      freeSlots: Array.from({ length: profile.connections }, (_, n) => profile.connections - 1 - n),
      inFlight: 0,
      // Of a new one the best is hoped.
      pace: { since: clock.now(), now: 0, before: profile.connections * AHEAD },
      failures: 0,
      era: 0,
      suspensions: 0,
      suspendedUntil: Number.NEGATIVE_INFINITY,
      allowed: profile.connections,
      probes: 0,
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

  function named(destination: string, hosts: TargetHost[], route: Route | null, pool: string) {
    const matching = route === null ? profileFor(shaping, destination, hosts) : null;
    return { matching, key: `${matching?.match ?? siteName(hosts, route)} via ${pool}` };
  }

  /** Sessions of an earlier era were all part of one outage, and do not count against the probing. */
  const hasRoom = (site: Site) =>
    site.freeSlots.length > 0 && (site.allowed >= site.profile.connections || site.probes < site.allowed);

  function suspend(site: Site): number {
    const wait = Math.min(settings.firstSuspension * 2 ** Math.min(site.suspensions, 16), LONGEST_SUSPENSION);
    site.suspensions++;
    site.suspendedUntil = clock.now() + wait;
    site.era++;
    site.failures = 0;
    site.allowed = 1;
    site.probes = 0;
    return wait;
  }

  return {
    suspended,
    wait: (site) => Math.max(0, site.suspendedUntil - clock.now()),
    of: (destination, hosts, route, pool) => {
      const { matching, key } = named(destination, hosts, route, pool);
      let site = sites.get(key);
      if (site === undefined) {
        site = make(key, pool, matching === null ? withRoute(route) : profileOf(matching));
        sites.set(key, site);
      }
      site.usedAt = clock.now();
      return site;
    },
    find: (...where) => sites.get(named(...where).key) ?? null,
    ahead,
    room: (site, lane) => (suspended(site) ? 0 : ahead(site) - site.backlog[lane].length),
    next: (site, admits) => {
      if (suspended(site) || !hasRoom(site)) return 'full';
      const lists = [site.armed[0], site.backlog[0], site.armed[1], site.backlog[1]];
      let found: Assignment | null = null;
      let armed = false;
      for (const [index, list] of lists.entries()) {
        found = pick(list, admits);
        armed = index % 2 === 0;
        if (found !== null) break;
      }
      if (found === null) return lists.every((list) => list.length === 0) ? 'none' : 'refused';
      // The slot freed last: its connection is the warmest, and idle ones beyond the need can close.
      const slot = site.freeSlots.pop() ?? 0;
      site.inFlight++;
      site.probes++;
      return { hold: { site, slot, era: site.era }, assignment: found, armed };
    },
    toArm: (site, admits) => {
      const { connections } = site.profile;
      const pace = paceOf(site);
      const fast = site.answers >= connections && Math.max(pace.now, pace.before) >= connections;
      if (!fast || suspended(site)) return null;
      if (site.arming + site.armed[0].length + site.armed[1].length >= connections) return null;
      const found = pick(site.backlog[0], admits) ?? pick(site.backlog[1], admits);
      if (found !== null) site.arming++;
      return found;
    },
    free: ({ site, slot, era }) => {
      site.inFlight--;
      if (era === site.era) site.probes--;
      paceOf(site).now++;
      site.freeSlots.push(slot);
      site.usedAt = clock.now();
    },
    answered: ({ site, era }) => {
      site.failures = 0;
      site.answers++;
      site.suspensions = 0;
      site.suspendedUntil = Number.NEGATIVE_INFINITY;
      // A late answer to an earlier session ends the suspension; how much the site takes is still to be seen.
      if (era === site.era) site.allowed = Math.min(site.allowed * 2, site.profile.connections);
    },
    unreachable: ({ site, era }) => {
      site.answers = 0;
      if (era !== site.era) return 0;
      site.failures++;
      // A probe needs no second opinion.
      return site.failures < SUSPEND_AFTER && site.suspensions === 0 ? 0 : suspend(site);
    },
    all: () => sites.values(),
    sweep: () => {
      for (const [key, site] of sites) {
        const idle =
          site.inFlight === 0 &&
          site.waiting.size === 0 &&
          site.arming === 0 &&
          [...site.armed, ...site.backlog].every((list) => list.length === 0);
        if (idle && !suspended(site) && clock.now() - site.usedAt > FORGET_AFTER) sites.delete(key);
      }
    },
  };
}

/** Removes and returns the first that is let through. Where a message is refused, so is a larger one of its account. */
function pick(list: Assignment[], admits: (assignment: Assignment) => boolean): Assignment | null {
  const refused = new Map<string, number>();
  const index = list.findIndex((assignment) => {
    const { account_id, content_bytes } = assignment.message;
    if (content_bytes >= (refused.get(account_id) ?? Number.POSITIVE_INFINITY)) return false;
    if (admits(assignment)) return true;
    refused.set(account_id, content_bytes);
    return false;
  });
  return index < 0 ? null : (list.splice(index, 1)[0] ?? null);
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

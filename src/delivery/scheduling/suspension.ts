import { type Clock, MINUTE } from '../../core/clock.ts';

/** What survives a restart. */
export interface SuspensionMemory {
  /** Suspensions in a row without an answer between them. */
  suspensions: number;
  /** Epoch ms. */
  suspendedUntil: number;
}

export interface SuspensionOptions {
  connections: number;
  /** Later suspensions double. */
  firstMs: number;
  clock: Clock;
  /** Setting the system clock must not prolong a suspension. */
  monotonic: Clock;
  memory?: SuspensionMemory | null | undefined;
  /** Connections before the first answer. Default: 2, so that a site that never replies holds few sessions. */
  initialConnections?: number | undefined;
}

const SUSPEND_AFTER_FAILURES = 2;
/** If both fail, the site is suspended. */
const INITIAL_CONNECTIONS = 2;
const MAX_SUSPENSION_MS = 30 * MINUTE;

/**
 * The outage of a site: after two sessions in a row in which no host could be reached, the site is suspended, for longer
 * each time. Then one connection probes it; once the probe is answered, the number of connections doubles with every
 * further answer (ramp-up). A new site begins with few connections, too.
 *
 * With `memory`, a suspension lasts for the rest of its time, at most 30 minutes, and then one connection probes the
 * site. Starts no timer.
 */
export function createSuspension(options: SuspensionOptions) {
  const { clock, monotonic, firstMs, initialConnections = INITIAL_CONNECTIONS } = options;
  let stored = options.memory ?? null;
  let { connections } = options;
  /** Sessions in a row that were answered, and that were not. */
  let answers = 0;
  let failures = 0;
  let epoch = 0;
  let suspendedUntil =
    stored === null
      ? Number.NEGATIVE_INFINITY
      : monotonic.now() + Math.min(stored.suspendedUntil - clock.now(), MAX_SUSPENSION_MS);
  /** Connections allowed since the site is known, or since its last suspension; the site has recovered when they are `connections`. */
  let allowed = stored === null ? Math.min(initialConnections, connections) : 1;
  /** Sessions in progress of the current epoch. */
  let probes = 0;

  function suspend(): number {
    const suspensions = stored?.suspensions ?? 0;
    const ms = Math.min(firstMs * 2 ** Math.min(suspensions, 16), MAX_SUSPENSION_MS);
    stored = { suspensions: suspensions + 1, suspendedUntil: clock.now() + ms };
    suspendedUntil = monotonic.now() + ms;
    epoch++;
    failures = 0;
    allowed = 1;
    probes = 0;
    return ms;
  }

  return {
    isSuspended: (): boolean => suspendedUntil > monotonic.now(),
    /** Milliseconds until the site is probed; 0: it is not suspended. */
    suspendedMs: (): number => Math.max(0, suspendedUntil - monotonic.now()),
    /** The number of suspensions so far: a session that began before the latest one belongs to the outage that caused it. */
    epoch: (): number => epoch,
    // Sessions of an earlier epoch belong to one outage: they do not count against the probes.
    /** Whether the ramp-up allows one more session. */
    mayConnect: (): boolean => allowed >= connections || probes < allowed,
    /** A session began. */
    started: (): void => {
      probes++;
    },
    /** A session of this epoch ended. */
    ended: (begunIn: number): void => {
      if (begunIn === epoch) probes--;
    },
    answered: (begunIn: number): void => {
      failures = 0;
      answers++;
      stored = null;
      suspendedUntil = Number.NEGATIVE_INFINITY;
      // A late answer to an earlier session ends the suspension; how many connections the site takes is still unknown.
      if (begunIn === epoch) allowed = Math.min(allowed * 2, connections);
    },
    /** Returns for how many ms the site is suspended because of it; 0: it is not. */
    unreachable: (begunIn: number): number => {
      answers = 0;
      if (begunIn !== epoch) return 0;
      failures++;
      // One failed probe suffices.
      return failures < SUSPEND_AFTER_FAILURES && stored === null ? 0 : suspend();
    },
    /** Lets one connection probe the site now, if it is suspended. */
    probeNow: (): void => {
      if (stored === null || suspendedUntil <= monotonic.now()) return;
      suspendedUntil = monotonic.now();
      stored = { ...stored, suspendedUntil: clock.now() };
    },
    /** Changes the number of connections at which the site counts as recovered. */
    configure: (next: number): void => {
      const hasRecovered = allowed >= connections;
      connections = next;
      allowed = hasRecovered ? connections : Math.min(allowed, connections);
    },
    /** Sessions in a row that were answered. */
    answers: (): number => answers,
    /** Connections that the ramp-up allows now. */
    allowed: (): number => allowed,
    /** What is stored; the same object while it does not change. Null: the site is not suspended. */
    memory: (): SuspensionMemory | null => stored,
  };
}

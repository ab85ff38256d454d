import type { DeliveryRoute } from '../../config/setting-types.ts';
import { type Clock, MINUTE, SECOND } from '../../core/clock.ts';
import type { Lane } from '../../store/domains/domains.ts';
import {
  type QueueKey,
  type QueuePriority,
  queueKeyText,
  type ReadyMessage,
} from '../../store/messages/queue.ts';
import type { TargetHost, TlsMode } from '../worker/protocol.ts';

/**
 * A site: the set of MX hosts behind a destination, times an egress pool. Connection limits belong to the site,
 * because a thousand domains may share one mailbox provider. A site has one slot for each connection that it may
 * have; a message holds a slot while it is sent, and a worker has at most one connection for each slot.
 *
 * A site whose hosts cannot be reached is suspended, for longer each time. Then one connection probes it; once the
 * probe is answered, the number of connections doubles with every further answer.
 *
 * The site owns its state; other modules change it only through these functions.
 */
export interface Site {
  readonly key: string;
  /** Unique in this process; together with a slot it selects the worker. */
  readonly number: number;
  readonly pool: string;
  /** Limits of the site; `configure` replaces them. */
  readonly profile: SiteProfile;
  /** Changes the limits. Sessions above a lower number of connections end by themselves. */
  configure(profile: SiteProfile): void;

  /** How many messages of a priority may wait in memory for a slot. */
  lookahead(): number;
  /** How many more messages of a priority the site accepts now; 0 while it is suspended. */
  capacity(priority: QueuePriority): number;
  backlogSize(priority: QueuePriority): number;
  /** Adds a message that was read from the queue to the backlog. */
  add(assignment: Assignment): void;

  /** Stores a key that has more messages in the queue than the site had capacity for. */
  wait(key: QueueKey): void;
  waitingCount(): number;
  /** A copy. */
  waitingKeys(): QueueKey[];
  /** Removes and returns the keys of a priority that have waited longest, at most `count`. */
  takeWaiting(priority: QueuePriority, count: number): QueueKey[];

  /**
   * Reserves a slot for the first message that `admits` accepts, transactional before marketing. `full`: the site has
   * no slot now; `none`: no message waits; `refused`: `admits` accepted none of those that wait.
   */
  reserve(admits: (assignment: Assignment) => boolean): ReservedMessage | 'full' | 'none' | 'refused';
  hasFreeSlot(): boolean;
  /** Frees the slot. Call exactly once for each reservation. */
  release(reservation: SlotReservation): void;

  /**
   * The next message to lease before a slot is free for it, so that the slot need not wait for a commit; null: none.
   * Only healthy and fast sites lease ahead, one message for each connection: at others, mail would be shown as being
   * sent while it waits. Followed by `addLeased` or `leaseEnded`.
   */
  nextToLease(admits: (assignment: Assignment) => boolean): Assignment | null;
  addLeased(assignment: Assignment): void;
  /** The message was not leased, or is not sent. */
  leaseEnded(): void;

  /**
   * Removes the messages that were read from the queue before `readBefore` (monotonic). Their keys wait again. The
   * caller releases the claims on `unleased` and returns `leased` to the queue.
   */
  drop(readBefore: number): { unleased: ReadyMessage[]; leased: ReadyMessage[] };

  /** A session ended with a reply that decides about the message. */
  answered(reservation: SlotReservation): void;
  /** No host of the site could be reached. Returns for how many ms the site is suspended because of it; 0: it is not. */
  unreachable(reservation: SlotReservation): number;
  isSuspended(): boolean;
  /** Whether the operator has paused the site or its egress pool. */
  isPaused(): boolean;
  /** Connections in use, and at most now. */
  connections(): { used: number; allowed: number };
  /** Milliseconds until a suspended site is probed; 0: it is not suspended. */
  suspendedMs(): number;

  /** Marks the site as used, so that it is not removed. */
  touch(): void;
  /** Whether the site has been unused for so long that its state is obsolete. */
  isObsolete(): boolean;
}

/** A message that waits in memory, with its route. */
export interface Assignment {
  message: ReadyMessage;
  hosts: TargetHost[];
  route: DeliveryRoute | null;
  lane: Lane;
  /** When it was read from the queue (monotonic). */
  readAt: number;
}

/** A slot that a message holds while it is sent. */
export interface SlotReservation {
  readonly site: Site;
  readonly slot: number;
  /** The number of suspensions of the site when the session began. */
  readonly era: number;
}

export interface ReservedMessage {
  reservation: SlotReservation;
  assignment: Assignment;
  /** The message was leased ahead. */
  leased: boolean;
}

export interface SiteProfile {
  connections: number;
  messagesPerConnection: number;
  idleMs: number;
  tls: TlsMode;
}

export interface SiteOptions {
  key: string;
  number: number;
  pool: string;
  profile: SiteProfile;
  /** Monotonic: setting the system clock must not prolong a suspension. */
  clock: Clock;
  /** Later suspensions double. */
  firstSuspensionMs: number;
  /** Default: never. */
  isPaused?: (() => boolean) | undefined;
}

/**
 * Maximum number of messages in memory for each connection: enough to hide the time that reading the queue takes. A
 * site reads no more messages ahead than it sent in a second.
 */
const LOOKAHEAD_PER_CONNECTION = 20;
/** Keys that wait at one site; the scan of the queue finds further ones. */
const MAX_WAITING_KEYS = 2000;
const SUSPEND_AFTER_FAILURES = 2;
const MAX_SUSPENSION_MS = 30 * MINUTE;
const OBSOLETE_AFTER_MS = 10 * MINUTE;

/** In the order in which `pop` returns 0 first. */
function slotsBelow(connections: number): number[] {
  return Array.from({ length: connections }, (_, n) => connections - 1 - n);
}

export function createSite(options: SiteOptions): Site {
  const { clock, key, number, pool, isPaused = () => false } = options;
  let { profile } = options;
  let { connections } = profile;
  /** By priority, like the next two. */
  const backlog: [Assignment[], Assignment[]] = [[], []];
  const leasedAhead: [Assignment[], Assignment[]] = [[], []];
  const waiting: [Map<string, QueueKey>, Map<string, QueueKey>] = [new Map(), new Map()];
  /** In the order in which slots take from them. */
  const ready = [leasedAhead[0], backlog[0], leasedAhead[1], backlog[1]];
  const usedSlots = new Set<number>();
  /** Those below `connections` that are not used. */
  let freeSlots = slotsBelow(connections);
  /** Leases that are being committed for `leasedAhead`. */
  let leasing = 0;
  /** Sessions in a row that were answered, and that were not. */
  let answers = 0;
  let failures = 0;
  /** Suspensions so far: a session that began before the latest one belongs to the outage that caused it. */
  let era = 0;
  /** Suspensions in a row without an answer between them. */
  let suspensions = 0;
  let suspendedUntil = Number.NEGATIVE_INFINITY;
  /** Connections allowed since the last suspension; the site has recovered when they are `connections`. */
  let allowed = connections;
  /** Sessions in progress of the current era. */
  let probes = 0;
  let usedAt = clock.now();
  /** Messages that left a slot in the second that began at `since`, and in the one before. A new site counts as fast. */
  let pace = { since: clock.now(), now: 0, before: connections * LOOKAHEAD_PER_CONNECTION };

  function currentPace(): typeof pace {
    const seconds = Math.floor((clock.now() - pace.since) / SECOND);
    if (seconds > 0)
      pace = { since: pace.since + seconds * SECOND, now: 0, before: seconds === 1 ? pace.now : 0 };
    return pace;
  }

  function lookahead(): number {
    const { now, before } = currentPace();
    return Math.min(Math.max(now, before, connections), connections * LOOKAHEAD_PER_CONNECTION);
  }

  const isSuspended = () => suspendedUntil > clock.now();

  /** After `connections` was lowered, sessions in progress may use slots above it. */
  const hasFreeSlot = () => freeSlots.length > 0 && usedSlots.size < connections;

  function configure(next: SiteProfile): void {
    const hasRecovered = allowed >= connections;
    profile = next;
    connections = next.connections;
    allowed = hasRecovered ? connections : Math.min(allowed, connections);
    freeSlots = slotsBelow(connections).filter((slot) => !usedSlots.has(slot));
  }

  /** Sessions of an earlier era belong to one outage: they do not count against the probes. */
  const mayConnect = () => hasFreeSlot() && (allowed >= connections || probes < allowed);

  function suspend(): number {
    const ms = Math.min(options.firstSuspensionMs * 2 ** Math.min(suspensions, 16), MAX_SUSPENSION_MS);
    suspensions++;
    suspendedUntil = clock.now() + ms;
    era++;
    failures = 0;
    allowed = 1;
    probes = 0;
    return ms;
  }

  function wait(queueKey: QueueKey): void {
    if (waiting[0].size + waiting[1].size >= MAX_WAITING_KEYS) return;
    waiting[queueKey.priority].set(queueKeyText(queueKey), queueKey);
  }

  /** Assignments are in the order in which they were read. */
  function dropFrom(lists: readonly Assignment[][], readBefore: number): ReadyMessage[] {
    const dropped: ReadyMessage[] = [];
    for (const list of lists) {
      const kept = list.findIndex(({ readAt }) => readAt >= readBefore);
      if (kept === 0) continue;
      for (const { message } of list.splice(0, kept < 0 ? list.length : kept)) dropped.push(message);
    }
    for (const { priority, account_id, destination } of dropped) wait({ priority, account_id, destination });
    return dropped;
  }

  const site: Site = {
    key,
    number,
    pool,
    get profile() {
      return profile;
    },
    configure,
    lookahead,
    capacity: (priority) => (isSuspended() || isPaused() ? 0 : lookahead() - backlog[priority].length),
    backlogSize: (priority) => backlog[priority].length,
    add: (assignment) => void backlog[assignment.message.priority].push(assignment),
    wait,
    waitingCount: () => waiting[0].size + waiting[1].size,
    waitingKeys: () => [...waiting[0].values(), ...waiting[1].values()],
    takeWaiting: (priority, count) => {
      const taken: QueueKey[] = [];
      for (const [text, queueKey] of waiting[priority]) {
        if (taken.length >= count) break;
        waiting[priority].delete(text);
        taken.push(queueKey);
      }
      return taken;
    },
    reserve: (admits) => {
      if (isSuspended() || isPaused() || !mayConnect()) return 'full';
      for (const list of ready) {
        const assignment = takeFirst(list, admits);
        if (assignment === null) continue;
        // The slot that was released last: its connection is still open, and connections that are not needed close.
        const slot = freeSlots.pop() ?? 0;
        usedSlots.add(slot);
        probes++;
        const leased = list === leasedAhead[0] || list === leasedAhead[1];
        return { reservation: { site, slot, era }, assignment, leased };
      }
      return ready.every((list) => list.length === 0) ? 'none' : 'refused';
    },
    hasFreeSlot,
    release: (reservation) => {
      if (reservation.era === era) probes--;
      currentPace().now++;
      usedSlots.delete(reservation.slot);
      if (reservation.slot < connections) freeSlots.push(reservation.slot);
      usedAt = clock.now();
    },
    nextToLease: (admits) => {
      const { now, before } = currentPace();
      const isFast = answers >= connections && Math.max(now, before) >= connections;
      if (!isFast || isSuspended() || isPaused()) return null;
      if (leasing + leasedAhead[0].length + leasedAhead[1].length >= connections) return null;
      const found = takeFirst(backlog[0], admits) ?? takeFirst(backlog[1], admits);
      if (found !== null) leasing++;
      return found;
    },
    addLeased: (assignment) => {
      leasing--;
      leasedAhead[assignment.message.priority].push(assignment);
    },
    leaseEnded: () => {
      leasing--;
    },
    drop: (readBefore) => ({
      unleased: dropFrom(backlog, readBefore),
      leased: dropFrom(leasedAhead, readBefore),
    }),
    answered: (reservation) => {
      failures = 0;
      answers++;
      suspensions = 0;
      suspendedUntil = Number.NEGATIVE_INFINITY;
      // A late answer to an earlier session ends the suspension; how many connections the site takes is still unknown.
      if (reservation.era === era) allowed = Math.min(allowed * 2, connections);
    },
    unreachable: (reservation) => {
      answers = 0;
      if (reservation.era !== era) return 0;
      failures++;
      // One failed probe suffices.
      return failures < SUSPEND_AFTER_FAILURES && suspensions === 0 ? 0 : suspend();
    },
    isSuspended,
    isPaused,
    connections: () => ({
      used: usedSlots.size,
      allowed: isSuspended() ? 0 : Math.min(allowed, connections),
    }),
    suspendedMs: () => Math.max(0, suspendedUntil - clock.now()),
    touch: () => {
      usedAt = clock.now();
    },
    isObsolete: () =>
      usedSlots.size === 0 &&
      leasing === 0 &&
      waiting.every(({ size }) => size === 0) &&
      ready.every((list) => list.length === 0) &&
      !isSuspended() &&
      clock.now() - usedAt > OBSOLETE_AFTER_MS,
  };
  return site;
}

/**
 * Removes and returns the first assignment that `admits` accepts. Where a message is refused, so is every message of
 * the same account that is not smaller.
 */
function takeFirst(list: Assignment[], admits: (assignment: Assignment) => boolean): Assignment | null {
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

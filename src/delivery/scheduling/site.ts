import type { DeliveryRoute } from '../../config/setting-types.ts';
import { type Clock, MINUTE, SECOND } from '../../core/clock.ts';
import type { JobContent } from '../../mail/stored-content.ts';
import type { Lane } from '../../store/domains/domains.ts';
import {
  MARKETING_PRIORITY,
  type MailToLease,
  type QueueKey,
  type QueuePriority,
  type ReadyMessage,
  TRANSACTIONAL_PRIORITY,
} from '../../store/messages/queue.ts';
import {
  createLimiter,
  createSiteAccountLimits,
  type Restriction,
  type SiteLimits,
  type SiteMemory,
} from '../shaping/limiter.ts';
import type { DestinationTls } from '../tls-policies.ts';
import type { TargetHost, TlsMode } from '../worker/protocol.ts';
import { createOpenConnections, createSlots, type OpenConnections } from './slots.ts';
import { createSuspension } from './suspension.ts';
import { createWaitingIndex, createWaitingKeys, type WaitingIndex } from './waiting-keys.ts';

export type Site = ReturnType<typeof createSite>;

/** A slot that a message holds while it is sent. The numbers are those of the site when the session began. */
export interface SlotReservation {
  readonly site: Site;
  readonly slot: number;
  readonly accountId: string;
  /** Suspensions of the site. */
  readonly suspensionEpoch: number;
  /** Steps of the limits of the site, and of the account at the site. */
  readonly limitEpoch: number;
  readonly accountEpoch: number;
}

export interface ReservedMessage {
  reservation: SlotReservation;
  assignment: Assignment;
}

export interface SiteProfile {
  connections: number;
  messagesPerConnection: number;
  /** Messages per second; 0: no limit. */
  perSecond: number;
  idleMs: number;
  tls: TlsMode;
  chunking: boolean;
  /** The pause after a temporary refusal because of our address, ms; 0: as after other ones. */
  addressPauseMs: number;
}

export interface SiteOptions {
  key: string;
  number: number;
  pool: string;
  /** Default: false. */
  isShared?: boolean | undefined;
  profile: SiteProfile;
  /** The system clock, for what is stored. Default: `clock`. */
  wallClock?: Clock | undefined;
  /** Monotonic: setting the system clock must not prolong a suspension. */
  clock: Clock;
  /** Later suspensions double. */
  firstSuspensionMs: number;
  /** The state before a restart. */
  memory?: SiteMemory | undefined;
  /** See `SuspensionOptions`. */
  initialConnections?: number | undefined;
  /** Whether the operator has paused the site. Default: never. */
  isPaused?: (() => boolean) | undefined;
  /** The keys that wait at all sites. Default: those of this site alone. */
  waiting?: WaitingIndex | undefined;
  /** The open connections of all sites. Default: those of this site alone, without a limit. */
  openConnections?: OpenConnections | undefined;
}

/**
 * Maximum number of messages in memory for each connection: enough to hide the time that reading the queue takes. A
 * site reads no more messages ahead than it sent in a second.
 */
const LOOKAHEAD_PER_CONNECTION = 20;
/**
 * The share of a site's connections that marketing mail leaves free, at least one: a sign-in code must not wait until a
 * message of a campaign has been sent. With few connections none is reserved.
 */
const RESERVED_SHARE = 0.1;
const MIN_CONNECTIONS_TO_RESERVE = 4;
/** Messages in memory beyond one for each connection in use. */
const MIN_LOOKAHEAD = 2;
/** Messages for each connection before the first answer: the messages of many sites that never answer would fill the memory. */
const UNKNOWN_LOOKAHEAD = 2;
const OBSOLETE_AFTER_MS = 10 * MINUTE;
/**
 * Minimum number of messages that a key reads where several compete for the capacity of the site, which bounds the
 * number of small reads.
 */
export const MIN_SHARE = 10;
/** Keys of accounts without a message in memory that are read although the lookahead is used up. */
const FIRST_KEYS = 4;
/** How long new messages with a lease are expected at most: a commit takes some milliseconds. */
const PROMISE_MS = SECOND;
/** Messages in memory that no slot was free for in this time are read again later: their routes may have changed. */
const MAX_AGE_MS = 10 * SECOND;
/**
 * Age at which two kinds of messages are read again: those whose account is limited at the site, and large ones that the
 * budget for bytes may delay. They must not take the place of others.
 */
const MAX_AGE_HELD_BACK_MS = 2 * SECOND;

/**
 * A site: the set of MX hosts behind a destination, or all destinations of a shaping profile, times an egress pool.
 * Limits of connections and rate belong to the site, because a thousand domains may share one mailbox provider. A site has
 * one slot for each connection that it may have; a message holds a slot while it is sent, and a worker has at most one
 * connection for each slot.
 *
 * A site whose hosts cannot be reached is suspended (suspension.ts). A site that asks to send less gets no mail for a time,
 * and then fewer connections and a lower rate until it accepts mail again (shaping/limiter.ts); when the request concerns
 * one sender, only its account is limited.
 *
 * The site owns its state; other modules change it only through these functions.
 *
 * Created without mail. `memory` restores its limits, its suspension and the wait that it requires from
 * greylisted mail. Starts no timer: what depends on time is computed when a function is called.
 */
export function createSite(options: SiteOptions) {
  const { clock, key, number, pool, memory, isShared = false, isPaused = () => false } = options;
  const clocks = { clock: options.wallClock ?? clock, monotonic: clock };
  let { profile } = options;
  const { connections, perSecond } = profile;
  const backlog = createBacklog();
  const waiting = createWaitingKeys(options.waiting ?? createWaitingIndex(clock));
  const limiter = createLimiter({ ...clocks, limits: profile, memory: memory?.limits });
  const accounts = createSiteAccountLimits({ ...clocks, limits: profile, memory: memory?.accounts });
  const suspension = createSuspension({
    ...clocks,
    connections,
    firstMs: options.firstSuspensionMs,
    memory: memory?.suspension,
    initialConnections: options.initialConnections,
  });
  const slots = createSlots(
    profile,
    options.openConnections ?? createOpenConnections({ limit: Number.POSITIVE_INFINITY, clock }),
    clock,
  );
  /** Messages in progress by account. */
  const inFlight = new Map<string, number>();
  let usedAt = clock.now();
  let greylistMs = memory?.greylistMs ?? null;
  /** New messages with a lease that were not stored yet. Those of sends that fail are forgotten after a second, with all others. */
  const promised = { messages: 0, since: Number.NEGATIVE_INFINITY };
  const pace = createPace(clock);

  /** A new site counts as fast over the connections that it has, and two more. */
  function paceOfNewSite(): number {
    const fast = (slots.used() + MIN_LOOKAHEAD) * LOOKAHEAD_PER_CONNECTION;
    return perSecond > 0 ? Math.min(fast, Math.ceil(perSecond)) : fast;
  }

  const measuredPace = () => pace.measured(paceOfNewSite);

  function lookahead(): number {
    const allowed = Math.min(limiter.connections(), suspension.allowed());
    const isUnknown = suspension.answers() === 0 && suspension.allowed() < profile.connections;
    const perConnection = isUnknown ? UNKNOWN_LOOKAHEAD : LOOKAHEAD_PER_CONNECTION;
    // Connections that the budgets of all sites do not admit need no messages: they would become stale and be read again.
    const usable = Math.min(allowed, slots.used() + MIN_LOOKAHEAD);
    return Math.min(Math.max(measuredPace(), usable), allowed * perConnection);
  }

  function expected(): number {
    if (clock.now() - promised.since > PROMISE_MS) {
      promised.messages = 0;
      promised.since = clock.now();
    }
    return promised.messages;
  }

  /**
   * Messages of a priority in memory: the lookahead, and those that are leased ahead. Marketing mail gets what transactional
   * mail leaves of it, as it would wait behind it.
   */
  function limitOf(priority: QueuePriority): number {
    const all = lookahead() + (isFast() ? limiter.connections() : 0);
    if (priority === TRANSACTIONAL_PRIORITY) return all;
    return Math.min(all, Math.max(MIN_LOOKAHEAD, all - backlog.size(TRANSACTIONAL_PRIORITY)));
  }

  /** Whether an account without a message in memory may add one. */
  const addsFirst = (priority: QueuePriority, accountId: string): boolean =>
    backlog.size(priority) < 2 * lookahead() && !backlog.has(priority, accountId);

  function isOutdated({ message, readAt }: Assignment): boolean {
    const age = clock.now() - readAt;
    if (age < MAX_AGE_HELD_BACK_MS) return false;
    return (
      age >= MAX_AGE_MS || message.content_bytes > UNCOUNTED_BYTES || accounts.isLimited(message.account_id)
    );
  }

  function drop(matches: (assignment: Assignment) => boolean): Assignment[] {
    const dropped = backlog.drop(matches);
    for (const { message } of dropped) waiting.add(message);
    return dropped;
  }

  const isHalted = () => suspension.isSuspended() || limiter.limitedMs() > 0 || isPaused();

  /** After the number of connections was lowered, sessions in progress may use slots above it. */
  const hasFreeSlot = (priority: QueuePriority) => slots.hasFree(connectionsOf(priority));

  /** How many connections may be in use after a message of this priority has taken one. */
  function connectionsOf(priority: QueuePriority): number {
    const allowed = limiter.connections();
    if (priority === TRANSACTIONAL_PRIORITY || allowed < MIN_CONNECTIONS_TO_RESERVE) return allowed;
    return allowed - Math.ceil(allowed * RESERVED_SHARE);
  }

  const mayStart = () =>
    !suspension.isSuspended() && !isPaused() && suspension.mayConnect() && limiter.waitMs() === 0;

  /** Whether the site is healthy and sends more messages per second than it has connections. */
  function isFast(): boolean {
    const allowed = limiter.connections();
    return suspension.answers() >= allowed && measuredPace() >= allowed;
  }

  /** How many messages may hold a lease and wait for a slot: as many as are free, and those that are leased ahead. */
  function placesForNew(priority: QueuePriority): number {
    const allowed = Math.min(connectionsOf(priority), suspension.allowed());
    const free = hasFreeSlot(priority) ? Math.max(0, allowed - slots.used()) : 0;
    if (isFast()) return free + allowed;
    return perSecond > 0 ? Math.min(free, 1) : free;
  }

  /** `admits`, and the limits of the message's account. */
  const admitsAccount = (admits: (assignment: Assignment) => boolean) => (assignment: Assignment) => {
    const { account_id } = assignment.message;
    return accounts.admits(account_id, inFlight.get(account_id) ?? 0) && admits(assignment);
  };

  const site = {
    key,
    /** Unique in this process; together with a slot it selects the worker. */
    number,
    pool,
    /** Whether destinations share it because of the names of their MX hosts, which their owners choose. */
    isShared,
    // Not a getter: objects with one are hash tables, and every decision about the next message reads this one.
    /** Limits of the site; `configure` replaces them. */
    profile: (): SiteProfile => profile,
    /** Changes the limits. Sessions above a lower number of connections end by themselves. */
    configure: (next: SiteProfile): void => {
      profile = next;
      limiter.configure(next);
      accounts.configure(next);
      suspension.configure(next.connections);
      slots.configure(next);
    },
    /** How many messages of a priority may wait in memory for a slot. */
    lookahead,
    /**
     * How many more messages of a priority the site accepts now of the account, or of any account; 0 while it is halted. An
     * account that has none in memory may add one although others have used the lookahead up, until twice the lookahead
     * waits.
     */
    capacity: (priority: QueuePriority, accountId?: string): number => {
      if (isHalted()) return 0;
      const mayAdd = accountId !== undefined && addsFirst(priority, accountId);
      return Math.max(limitOf(priority) - backlog.size(priority), mayAdd ? 1 : 0);
    },
    backlogSize: backlog.size,
    /** Adds a message to the backlog: it was read from the queue, or accepted with a lease. */
    add: backlog.add,
    /** Stores a key that has more messages in the queue than the site had capacity for. */
    addWaitingKey: waiting.add,
    waitingCount: waiting.count,
    /** A copy. */
    waitingKeys: waiting.list,
    /**
     * Removes and returns the waiting keys of a priority that may be read now: only as many as can get a share of the
     * capacity each. Accounts take turns; those without a message in memory need not wait for the others.
     */
    takeReadable: (priority: QueuePriority): QueueKey[] => {
      if (waiting.count() === 0 || isHalted()) return [];
      const limit = limitOf(priority);
      const left = limit - backlog.size(priority);
      // Reads again when half of the lookahead is used up, for fewer and larger reads.
      if (left * 2 >= limit && left > 0) return waiting.take(priority, Math.ceil(left / MIN_SHARE));
      return waiting.takeOf(priority, FIRST_KEYS, (accountId) => addsFirst(priority, accountId));
    },
    /** Removes all waiting keys: the scan of the queue finds them again. */
    clearWaitingKeys: waiting.clear,
    /**
     * Reserves a slot for the first message that `admits` accepts, transactional before marketing, which leaves a tenth of
     * the connections free. `full`: no message may start now, because the site has no free slot for those that wait, is
     * suspended or paused, or its rate or ramp-up allows none; `none`: no message waits; `refused`: `admits` or the limits of their accounts accepted none of those that wait.
     */
    reserve: (admits: (assignment: Assignment) => boolean): ReservedMessage | 'full' | 'none' | 'refused' => {
      if (!hasFreeSlot(TRANSACTIONAL_PRIORITY) || !mayStart()) return 'full';
      const lowest = hasFreeSlot(MARKETING_PRIORITY) ? MARKETING_PRIORITY : TRANSACTIONAL_PRIORITY;
      if (backlog.isEmpty(lowest)) return backlog.isEmpty(MARKETING_PRIORITY) ? 'none' : 'full';
      const assignment = backlog.take(admitsAccount(admits), lowest);
      if (assignment === null) return 'refused';
      const { account_id: accountId } = assignment.message;
      const slot = slots.take();
      inFlight.set(accountId, (inFlight.get(accountId) ?? 0) + 1);
      suspension.started();
      limiter.start();
      const epochs = {
        suspensionEpoch: suspension.epoch(),
        limitEpoch: limiter.epoch(),
        accountEpoch: accounts.start(accountId),
      };
      return { reservation: { site, slot, accountId, ...epochs }, assignment };
    },
    /** Whether a message of this priority could take a slot. */
    hasFreeSlot,
    /** Frees the slot. Call exactly once for each reservation. `wasUsed`: whether a worker has begun with the message. */
    release: (reservation: SlotReservation, wasUsed = true): void => {
      const { slot, accountId, suspensionEpoch, limitEpoch, accountEpoch } = reservation;
      suspension.ended(suspensionEpoch);
      if (!wasUsed) {
        limiter.undo(limitEpoch);
        accounts.undo(accountId, accountEpoch);
      }
      pace.count();
      slots.release(slot, suspension.answers() > 0);
      const left = (inFlight.get(accountId) ?? 0) - 1;
      if (left > 0) inFlight.set(accountId, left);
      else inFlight.delete(accountId);
      usedAt = clock.now();
    },
    /**
     * The messages without a lease that get one before a slot is free for them, so that the slot need not wait for a commit.
     * Only healthy and fast sites lease ahead, of the next messages, one for each connection: at others, mail would be shown
     * as being sent while it waits.
     */
    toLeaseAhead: (admits: (assignment: Assignment) => boolean): Assignment[] => {
      if (!isFast() || !mayStart()) return [];
      const isAdmitted = admitsAccount(admits);
      return backlog
        .first(limiter.connections())
        .filter((assignment) => assignment.lease === undefined && isAdmitted(assignment));
    },
    /**
     * Whether a message that is about to be stored can have a lease from then on, because no other mail waits for the site
     * and it can be sent immediately or is leased ahead. At a fast site also because it is short transactional mail that will be
     * sent within about a second, which then needs no separate commit. The message is expected for up to a second, so that sends
     * at the same time get no more leases than this.
     */
    promiseLease: ({ priority, account_id: accountId, content_bytes: bytes }: MailToLease): boolean => {
      if (waiting.count() > 0 || isHalted() || accounts.isLimited(accountId)) return false;
      const queued = backlog.size(TRANSACTIONAL_PRIORITY) + backlog.size(MARKETING_PRIORITY);
      // A large one may wait for the budget.
      const isAhead = priority === TRANSACTIONAL_PRIORITY && bytes <= UNCOUNTED_BYTES && isFast();
      const maySend = isAhead
        ? queued + expected() < limitOf(priority)
        : queued === 0 && mayStart() && expected() < placesForNew(priority);
      if (maySend) promised.messages++;
      return maySend;
    },
    /** A message with such a lease was stored. */
    arrived: (): void => {
      promised.messages = Math.max(0, expected() - 1);
    },
    /** Removes the messages in memory. Their keys wait again. The caller releases their claims, and returns those with a lease to the queue. */
    drop: (): Assignment[] => drop(() => true),
    /** Like `drop`, but removes only messages that were read so long ago that other keys get a turn. */
    dropOutdated: (): Assignment[] => drop(isOutdated),
    /** A session ended with a reply that decides about the message; `accepted`: with 2xx. */
    answered: (
      { suspensionEpoch, limitEpoch, accountId, accountEpoch }: SlotReservation,
      accepted: boolean,
    ): void => {
      suspension.answered(suspensionEpoch);
      if (!accepted) return;
      limiter.delivered(limitEpoch);
      accounts.delivered(accountId, accountEpoch);
    },
    /** No host of the site could be reached. Returns for how many ms the site is suspended because of it; 0: it is not. */
    unreachable: ({ suspensionEpoch }: SlotReservation): number => suspension.unreachable(suspensionEpoch),
    /** The site asked to send less, see `Limiter.throttled`. Returns for how many ms it gets no mail; 0: counted already. */
    throttled: ({ limitEpoch }: SlotReservation, waitMs: number | null, resumesWithOne?: boolean): number =>
      limiter.throttled(limitEpoch, waitMs, measuredPace(), resumesWithOne),
    /** Limits the site immediately, see `Limiter.restrict`. Returns the epoch in which sessions begin from now on. */
    restrict: (restriction: Restriction): number => {
      limiter.restrict(restriction);
      return limiter.epoch();
    },
    /**
     * The site asked the sender to send less: limits only the account of the message. Returns what `throttled` returns.
     */
    senderThrottled: ({ accountId, accountEpoch }: SlotReservation, waitMs: number | null): number =>
      accounts.throttled(accountId, accountEpoch, waitMs, measuredPace()),
    /** Whether the site replied in its last session; false before the first one. */
    hasAnswered: (): boolean => suspension.answers() > 0,
    isSuspended: suspension.isSuspended,
    /** Milliseconds until a suspended site is probed; 0: it is not suspended. */
    suspendedMs: suspension.suspendedMs,
    /** Lets one connection probe the site now, if it is suspended. */
    probeNow: suspension.probeNow,
    /** Milliseconds until the site gets mail again, because it asked to send less; 0: it gets mail. Only the operator pauses it. */
    limitedMs: limiter.limitedMs,
    /** Whether no message is sent to the site: it is suspended, asked to send less, or is paused by the operator. */
    isHalted,
    /** Whether the operator has paused the site or its egress pool. */
    isPaused,
    /** Connections in use, and how many may be in use now for a message of this priority. */
    connections: (priority: QueuePriority): { used: number; allowed: number } => {
      const used = slots.used();
      const allowed = suspension.isSuspended() ? 0 : Math.min(connectionsOf(priority), suspension.allowed());
      return { used, allowed: slots.waitsForConnection() ? Math.min(used, allowed) : allowed };
    },
    /** Milliseconds until the rate allows the next message; 0: now. */
    rateWaitMs: limiter.waitMs,
    /** Milliseconds until the site takes mail of the account again; 0: now. */
    accountLimitedMs: accounts.limitedMs,
    /** Whether the site takes less mail of the account, and what is sent of it now uses this up. */
    isAccountBusy: (accountId: string): boolean => !accounts.admits(accountId, inFlight.get(accountId) ?? 0),
    /** The limits in force. */
    limits: (): SiteLimits => ({
      connections: limiter.connections(),
      perSecond: limiter.perSecond(),
      level: limiter.level(),
      since: limiter.memory()?.since ?? null,
      limitedMs: limiter.limitedMs(),
      suspendedMs: suspension.suspendedMs(),
      accounts: accounts.count(),
      inFlight: slots.used(),
    }),
    /** The wait after which the site accepted greylisted mail, ms; null: not known. */
    greylistMs: (): number | null => greylistMs,
    learnGreylisting: (ms: number | null): void => {
      greylistMs = ms;
    },
    /** What survives a restart; the parts are the same objects while they do not change. */
    memory: (): SiteMemory => ({
      limits: limiter.memory(),
      suspension: suspension.memory(),
      greylistMs,
      accounts: accounts.memory(),
    }),
    /** Marks the site as used, so that it is not removed. */
    touch: (): void => {
      usedAt = clock.now();
    },
    // A site that the operator has paused is created again, and is paused again, when mail for it is read.
    /** Whether the site has been unused for so long that its state is obsolete. */
    isObsolete: (): boolean =>
      site.isUnused(OBSOLETE_AFTER_MS) && !suspension.isSuspended() && limiter.limitedMs() === 0,
    /** Whether the site has no mail in memory and was not used for `ms`. */
    isUnused: (ms: number): boolean =>
      slots.used() === 0 &&
      waiting.count() === 0 &&
      backlog.isEmpty(MARKETING_PRIORITY) &&
      clock.now() - usedAt > ms,
  };
  return site;
}

/**
 * The part of each content that does not count toward the limit on bytes, so that large messages to slow hosts do not
 * block ordinary mail. The number of sessions bounds the sum of these parts.
 */
export const UNCOUNTED_BYTES = 64 * 1024;

/** A message that waits in memory, with its route. */
export interface Assignment {
  message: ReadyMessage;
  hosts: TargetHost[];
  route: DeliveryRoute | null;
  lane: Lane;
  /** The mailbox provider behind the hosts (`providerOfHosts`); null: over a fixed route. */
  provider: string | null;
  /** Whose refusals of a source address count together; absent: those of the provider. */
  receiver?: string | undefined;
  /** What the destination has published about TLS; absent with a configured route. */
  tls?: DestinationTls;
  /** When it was read from the queue, or accepted with a lease (monotonic). */
  readAt: number;
  /**
   * The commit of its lease, since it was accepted or ahead of its turn. False: it is not sent, and the reason is recorded.
   * Absent: it has no lease yet.
   */
  lease?: Promise<boolean>;
  /** The content of a message that was accepted with a lease, if it is small. Absent: it is read when the job is built. */
  content?: JobContent | undefined;
}

type Admits = (assignment: Assignment) => boolean;

/**
 * The messages of a site that wait in memory.
 *
 * Empty at first and without a bound: the site limits what is added (`Site.capacity`). Messages are in memory only; the
 * queue in the database has all of them.
 */
export function createBacklog() {
  const turns = [createTurns(), createTurns()] as const;
  const [transactional, marketing] = turns;

  return {
    add: (assignment: Assignment): void => turns[assignment.message.priority].add(assignment),
    size: (priority: QueuePriority): number => turns[priority].size(),
    /** Whether the account has messages of a priority. */
    has: (priority: QueuePriority, accountId: string): boolean => turns[priority].has(accountId),
    /** Whether no message waits, down to the priority `lowest`. */
    isEmpty: (lowest: QueuePriority): boolean =>
      transactional.size() === 0 && (lowest === TRANSACTIONAL_PRIORITY || marketing.size() === 0),
    /**
     * Removes and returns the next message that `admits` accepts, transactional ones first, down to the priority `lowest`.
     * Accounts take turns: one message of an account does not wait for those that another account had before.
     */
    take: (admits: Admits, lowest: QueuePriority): Assignment | null =>
      transactional.take(admits) ?? (lowest === MARKETING_PRIORITY ? marketing.take(admits) : null),
    /** The next messages in the order of their turns, at most `count`. */
    first: (count: number): Assignment[] => {
      const next = transactional.first(count);
      return next.length < count ? [...next, ...marketing.first(count - next.length)] : next;
    },
    /** Removes and returns the messages that `isOutdated` accepts. */
    drop: (isOutdated: (assignment: Assignment) => boolean): Assignment[] =>
      turns.flatMap((list) => list.drop(isOutdated)),
  };
}

/** Messages whose accounts take turns. */
function createTurns() {
  /** The messages of each account in the order in which they were read; the account whose turn it is comes first. */
  const accounts = new Map<string, Assignment[]>();
  let size = 0;

  return {
    add: (assignment: Assignment): void => {
      const { account_id: accountId } = assignment.message;
      const list = accounts.get(accountId);
      if (list === undefined) accounts.set(accountId, [assignment]);
      else list.push(assignment);
      size++;
    },
    size: (): number => size,
    has: (accountId: string): boolean => accounts.has(accountId),
    /** Removes and returns the next message that `admits` accepts. */
    take: (admits: Admits): Assignment | null => {
      for (const [accountId, list] of accounts) {
        const assignment = takeFirst(list, admits);
        if (assignment === null) continue;
        size--;
        accounts.delete(accountId);
        if (list.length > 0) accounts.set(accountId, list);
        return assignment;
      }
      return null;
    },
    /** The next messages, at most `count`. */
    first: (count: number): Assignment[] => {
      const next: Assignment[] = [];
      for (let turn = 0; next.length < size; turn++)
        for (const list of accounts.values()) {
          if (next.length >= count) return next;
          const assignment = list[turn];
          if (assignment !== undefined) next.push(assignment);
        }
      return next;
    },
    /** Removes and returns the messages that `isOutdated` accepts. */
    drop: (isOutdated: (assignment: Assignment) => boolean): Assignment[] => {
      const dropped: Assignment[] = [];
      for (const [accountId, list] of accounts) {
        const kept = list.filter((assignment) => !isOutdated(assignment));
        if (kept.length === list.length) continue;
        for (const assignment of list) if (isOutdated(assignment)) dropped.push(assignment);
        if (kept.length > 0) accounts.set(accountId, kept);
        else accounts.delete(accountId);
      }
      size -= dropped.length;
      return dropped;
    },
  };
}

/**
 * Removes and returns the first message of an account that `admits` accepts. After a refusal only smaller messages are
 * tried, and none if the size of the refused one is not the reason.
 */
function takeFirst(list: Assignment[], admits: Admits): Assignment | null {
  let refused = Number.POSITIVE_INFINITY;
  for (const [index, assignment] of list.entries()) {
    const { content_bytes } = assignment.message;
    if (content_bytes >= refused) continue;
    if (admits(assignment)) return list.splice(index, 1)[0] ?? null;
    if (content_bytes <= UNCOUNTED_BYTES) return null;
    refused = content_bytes;
  }
  return null;
}

/**
 * How many messages a site sends per second.
 *
 * `clock`: monotonic.
 */
export function createPace(clock: Clock) {
  /** Messages in the second that began at `since`, and in the one before; null: the site is new. */
  let pace: { since: number; now: number; before: number | null } = {
    since: clock.now(),
    now: 0,
    before: null,
  };

  function current(): typeof pace {
    const seconds = Math.floor((clock.now() - pace.since) / SECOND);
    if (seconds > 0)
      pace = { since: pace.since + seconds * SECOND, now: 0, before: seconds === 1 ? pace.now : 0 };
    return pace;
  }

  return {
    /** A message has left its slot. */
    count: (): void => {
      current().now++;
    },
    /** Messages in this second or the one before, whichever are more. `ofNew`: of a site in its first second. */
    measured: (ofNew: () => number): number => {
      const { now, before } = current();
      return Math.max(now, before ?? ofNew());
    },
  };
}

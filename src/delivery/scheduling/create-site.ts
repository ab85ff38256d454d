import { type Clock, MINUTE, SECOND } from '../../core/clock.ts';
import {
  MARKETING_PRIORITY,
  type QueuePriority,
  TRANSACTIONAL_PRIORITY,
} from '../../store/messages/queue.ts';
import { createLimiter, createSiteAccountLimits, type SiteMemory } from '../shaping/limiter.ts';
import { type Assignment, createBacklog, UNCOUNTED_BYTES } from './backlog.ts';
import { createOpenConnections, type OpenConnections } from './open-connections.ts';
import { createPace } from './pace.ts';
import type { DroppedMessages, Site, SiteProfile } from './site.ts';
import { createSlots } from './slots.ts';
import { createSuspension } from './suspension.ts';
import { createWaitingIndex, createWaitingKeys, type WaitingIndex } from './waiting-keys.ts';

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
/** Messages in memory that no slot was free for in this time are read again later: their routes may have changed. */
const MAX_AGE_MS = 10 * SECOND;
/**
 * Age at which two kinds of messages are read again: those whose account is limited at the site, and large ones that the
 * budget for bytes may delay. They must not take the place of others.
 */
const MAX_AGE_HELD_BACK_MS = 2 * SECOND;

/**
 * Creates a site without mail. `memory` restores its limits, its suspension and the wait that it requires from
 * greylisted mail. Starts no timer: what depends on time is computed when a function is called.
 */
export function createSite(options: SiteOptions): Site {
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
  /** Leases that are being committed. */
  let leasing = 0;
  /** New messages that are being committed without a lease. */
  let storing = 0;
  let usedAt = clock.now();
  let greylistMs = memory?.greylistMs ?? null;
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

  /** Marketing mail gets what transactional mail leaves of the lookahead, as it would wait behind it. */
  function limitOf(priority: QueuePriority): number {
    const all = lookahead();
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

  function drop(matches: (assignment: Assignment) => boolean): DroppedMessages {
    const dropped = backlog.drop(matches);
    for (const list of [dropped.unleased, dropped.leased]) for (const message of list) waiting.add(message);
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

  const site: Site = {
    key,
    number,
    pool,
    isShared,
    // Not a getter: objects with one are hash tables, and every decision about the next message reads this one.
    profile: () => profile,
    configure: (next) => {
      profile = next;
      limiter.configure(next);
      accounts.configure(next);
      suspension.configure(next.connections);
      slots.configure(next);
    },
    lookahead,
    capacity: (priority, accountId) => {
      if (isHalted()) return 0;
      const mayAdd = accountId !== undefined && addsFirst(priority, accountId);
      return Math.max(limitOf(priority) - backlog.size(priority), mayAdd ? 1 : 0);
    },
    backlogSize: backlog.size,
    add: backlog.add,
    addWaitingKey: waiting.add,
    waitingCount: waiting.count,
    waitingKeys: waiting.list,
    takeReadable: (priority) => {
      if (waiting.count() === 0 || isHalted()) return [];
      const limit = limitOf(priority);
      const left = limit - backlog.size(priority);
      // Reads again when half of the lookahead is used up, for fewer and larger reads.
      if (left * 2 >= limit && left > 0) return waiting.take(priority, Math.ceil(left / MIN_SHARE));
      return waiting.takeOf(priority, FIRST_KEYS, (accountId) => addsFirst(priority, accountId));
    },
    clearWaitingKeys: waiting.clear,
    reserve: (admits) => {
      if (!hasFreeSlot(TRANSACTIONAL_PRIORITY) || !mayStart()) return 'full';
      const lowest = hasFreeSlot(MARKETING_PRIORITY) ? MARKETING_PRIORITY : TRANSACTIONAL_PRIORITY;
      if (backlog.isEmpty(lowest)) return backlog.isEmpty(MARKETING_PRIORITY) ? 'none' : 'full';
      const next = backlog.take(admitsAccount(admits), lowest);
      if (next === null) return 'refused';
      const { account_id: accountId } = next.assignment.message;
      const slot = slots.take();
      inFlight.set(accountId, (inFlight.get(accountId) ?? 0) + 1);
      suspension.started();
      limiter.start();
      const epochs = {
        suspensionEpoch: suspension.epoch(),
        limitEpoch: limiter.epoch(),
        accountEpoch: accounts.start(accountId),
      };
      return { reservation: { site, slot, accountId, ...epochs }, ...next };
    },
    hasFreeSlot,
    release: ({ slot, accountId, suspensionEpoch }) => {
      suspension.ended(suspensionEpoch);
      pace.count();
      slots.release(slot, suspension.answers() > 0);
      const left = (inFlight.get(accountId) ?? 0) - 1;
      if (left > 0) inFlight.set(accountId, left);
      else inFlight.delete(accountId);
      usedAt = clock.now();
    },
    nextToLease: (admits) => {
      if (!isFast() || !mayStart()) return null;
      if (leasing + backlog.leased() >= limiter.connections()) return null;
      const found = backlog.takeAdded(admitsAccount(admits));
      if (found !== null) leasing++;
      return found;
    },
    reserveNew: (assignment, admits) => {
      const { priority, account_id: accountId, content_bytes: bytes } = assignment.message;
      if (waiting.count() > 0 || isHalted() || accounts.isLimited(accountId)) return null;
      const queued = backlog.size(TRANSACTIONAL_PRIORITY) + backlog.size(MARKETING_PRIORITY) + storing;
      if (
        queued === 0 &&
        mayStart() &&
        leasing + backlog.leased() < placesForNew(priority) &&
        admits(assignment)
      ) {
        leasing++;
        return 'lease';
      }
      if (queued >= limitOf(priority)) return null;
      storing++;
      // It is sent within about a second, which is the lookahead of a fast site. A large one may wait for the budget.
      const isLeased = priority === TRANSACTIONAL_PRIORITY && bytes <= UNCOUNTED_BYTES && isFast();
      return isLeased ? 'leased-backlog' : 'backlog';
    },
    addNew: (assignment) => {
      storing--;
      backlog.add(assignment);
    },
    newEnded: () => {
      storing--;
    },
    addLeased: (assignment) => {
      leasing--;
      backlog.addLeased(assignment);
    },
    leaseEnded: () => {
      leasing--;
    },
    drop: () => drop(() => true),
    dropOutdated: () => drop(isOutdated),
    answered: ({ suspensionEpoch, limitEpoch, accountId, accountEpoch }, accepted) => {
      suspension.answered(suspensionEpoch);
      if (!accepted) return;
      limiter.delivered(limitEpoch);
      accounts.delivered(accountId, accountEpoch);
    },
    unreachable: ({ suspensionEpoch }) => suspension.unreachable(suspensionEpoch),
    throttled: ({ limitEpoch }, waitMs, resumesWithOne) =>
      limiter.throttled(limitEpoch, waitMs, measuredPace(), resumesWithOne),
    restrict: (restriction) => {
      limiter.restrict(restriction);
      return limiter.epoch();
    },
    senderThrottled: ({ accountId, accountEpoch }, waitMs) =>
      accounts.throttled(accountId, accountEpoch, waitMs, measuredPace()),
    hasAnswered: () => suspension.answers() > 0,
    isSuspended: suspension.isSuspended,
    suspendedMs: suspension.suspendedMs,
    probeNow: suspension.probeNow,
    limitedMs: limiter.limitedMs,
    isHalted,
    isPaused,
    connections: () => {
      const used = slots.used();
      const allowed = suspension.isSuspended() ? 0 : Math.min(limiter.connections(), suspension.allowed());
      return { used, allowed: slots.waitsForConnection() ? Math.min(used, allowed) : allowed };
    },
    rateWaitMs: limiter.waitMs,
    accountLimitedMs: accounts.limitedMs,
    limits: () => ({
      connections: limiter.connections(),
      perSecond: limiter.perSecond(),
      level: limiter.level(),
      since: limiter.memory()?.since ?? null,
      limitedMs: limiter.limitedMs(),
      suspendedMs: suspension.suspendedMs(),
      accounts: accounts.count(),
      inFlight: slots.used(),
    }),
    greylistMs: () => greylistMs,
    learnGreylisting: (ms) => {
      greylistMs = ms;
    },
    memory: () => ({
      limits: limiter.memory(),
      suspension: suspension.memory(),
      greylistMs,
      accounts: accounts.memory(),
    }),
    touch: () => {
      usedAt = clock.now();
    },
    // A site that the operator has paused is created again, and is paused again, when mail for it is read.
    isObsolete: () =>
      site.isUnused(OBSOLETE_AFTER_MS) && !suspension.isSuspended() && limiter.limitedMs() === 0,
    isUnused: (ms) =>
      slots.used() === 0 &&
      leasing === 0 &&
      storing === 0 &&
      waiting.count() === 0 &&
      backlog.isEmpty(MARKETING_PRIORITY) &&
      clock.now() - usedAt > ms,
  };
  return site;
}

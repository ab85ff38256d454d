import { type Clock, MINUTE, SECOND } from '../../core/clock.ts';
import { createAccountLimits } from '../shaping/account-limits.ts';
import { createLimiter } from '../shaping/limiter.ts';
import type { SiteMemory } from '../shaping/site-limits.ts';
import { type Assignment, createBacklog } from './backlog.ts';
import type { Site, SiteProfile } from './site.ts';
import { createSuspension } from './suspension.ts';

export interface SiteOptions {
  key: string;
  number: number;
  pool: string;
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
}

/**
 * Maximum number of messages in memory for each connection: enough to hide the time that reading the queue takes. A
 * site reads no more messages ahead than it sent in a second.
 */
const LOOKAHEAD_PER_CONNECTION = 20;
/** Messages in memory beyond one for each connection in use. */
const MIN_LOOKAHEAD = 2;
/** Messages for each connection before the first answer: the messages of many sites that never answer would fill the memory. */
const UNKNOWN_LOOKAHEAD = 2;
const OBSOLETE_AFTER_MS = 10 * MINUTE;

/** In the order in which `pop` returns 0 first. */
function slotsBelow(connections: number): number[] {
  return Array.from({ length: connections }, (_, n) => connections - 1 - n);
}

export function createSite(options: SiteOptions): Site {
  const { clock, key, number, pool, memory, isPaused = () => false } = options;
  const clocks = { clock: options.wallClock ?? clock, monotonic: clock };
  let { profile } = options;
  const { connections, perSecond } = profile;
  const backlog = createBacklog();
  const limiter = createLimiter({ ...clocks, limits: profile, memory: memory?.limits });
  const accounts = createAccountLimits({ ...clocks, limits: profile, memory: memory?.accounts });
  const suspension = createSuspension({
    ...clocks,
    connections,
    firstMs: options.firstSuspensionMs,
    memory: memory?.suspension,
    initialConnections: options.initialConnections,
  });
  const usedSlots = new Set<number>();
  /** Messages in progress by account. */
  const inFlight = new Map<string, number>();
  /** Those below the configured number of connections that are not used. */
  let freeSlots = slotsBelow(connections);
  /** Leases that are being committed. */
  let leasing = 0;
  let usedAt = clock.now();
  let greylistMs = memory?.greylistMs ?? null;
  /** Messages that left a slot in the second that began at `since`, and in the one before. A new site counts as fast. */
  let pace = { since: clock.now(), now: 0, before: paceOfNewSite() };

  function paceOfNewSite(): number {
    const fast = connections * LOOKAHEAD_PER_CONNECTION;
    return perSecond > 0 ? Math.min(fast, Math.ceil(perSecond)) : fast;
  }

  function currentPace(): typeof pace {
    const seconds = Math.floor((clock.now() - pace.since) / SECOND);
    if (seconds > 0)
      pace = { since: pace.since + seconds * SECOND, now: 0, before: seconds === 1 ? pace.now : 0 };
    return pace;
  }

  function measuredPace(): number {
    const { now, before } = currentPace();
    return Math.max(now, before);
  }

  function lookahead(): number {
    const allowed = Math.min(limiter.connections(), suspension.allowed());
    const isUnknown = suspension.answers() === 0 && suspension.allowed() < profile.connections;
    const perConnection = isUnknown ? UNKNOWN_LOOKAHEAD : LOOKAHEAD_PER_CONNECTION;
    // Connections that the budgets of all sites do not admit need no messages: they would become stale and be read again.
    const usable = Math.min(allowed, usedSlots.size + MIN_LOOKAHEAD);
    return Math.min(Math.max(measuredPace(), usable), allowed * perConnection);
  }

  const isHalted = () => suspension.isSuspended() || limiter.pausedMs() > 0 || isPaused();

  /** After the number of connections was lowered, sessions in progress may use slots above it. */
  const hasFreeSlot = () => freeSlots.length > 0 && usedSlots.size < limiter.connections();

  const mayStart = () =>
    !suspension.isSuspended() && !isPaused() && suspension.mayConnect() && limiter.waitMs() === 0;

  /** `admits`, and the limits of the message's account. */
  const admitsAccount = (admits: (assignment: Assignment) => boolean) => (assignment: Assignment) => {
    const { account_id } = assignment.message;
    return accounts.admits(account_id, inFlight.get(account_id) ?? 0) && admits(assignment);
  };

  const site: Site = {
    key,
    number,
    pool,
    get profile() {
      return profile;
    },
    configure: (next) => {
      profile = next;
      limiter.configure(next);
      accounts.configure(next);
      suspension.configure(next.connections);
      freeSlots = slotsBelow(next.connections).filter((slot) => !usedSlots.has(slot));
    },
    lookahead,
    capacity: (priority, accountId) => {
      if (isHalted()) return 0;
      const limit = lookahead();
      const size = backlog.size(priority);
      const addsFirst = accountId !== undefined && size < 2 * limit && !backlog.has(priority, accountId);
      return Math.max(limit - size, addsFirst ? 1 : 0);
    },
    backlogSize: backlog.size,
    add: backlog.add,
    wait: backlog.wait,
    waitingCount: backlog.waitingCount,
    waitingKeys: backlog.waitingKeys,
    takeWaiting: backlog.takeWaiting,
    reserve: (admits) => {
      if (!hasFreeSlot() || !mayStart()) return 'full';
      const next = backlog.take(admitsAccount(admits));
      if (next === null) return backlog.isEmpty() ? 'none' : 'refused';
      const { account_id: accountId } = next.assignment.message;
      // The slot that was released last: its connection is still open, and connections that are not needed close.
      const slot = freeSlots.pop() ?? 0;
      usedSlots.add(slot);
      inFlight.set(accountId, (inFlight.get(accountId) ?? 0) + 1);
      suspension.started();
      limiter.start();
      const eras = {
        era: suspension.era(),
        limitEra: limiter.era(),
        accountEra: accounts.start(accountId),
      };
      return { reservation: { site, slot, accountId, ...eras }, ...next };
    },
    hasFreeSlot,
    release: ({ slot, accountId, era }) => {
      suspension.ended(era);
      currentPace().now++;
      usedSlots.delete(slot);
      if (slot < profile.connections) freeSlots.push(slot);
      const left = (inFlight.get(accountId) ?? 0) - 1;
      if (left > 0) inFlight.set(accountId, left);
      else inFlight.delete(accountId);
      usedAt = clock.now();
    },
    nextToLease: (admits) => {
      const allowed = limiter.connections();
      const isFast = suspension.answers() >= allowed && measuredPace() >= allowed;
      if (!isFast || !mayStart()) return null;
      if (leasing + backlog.leased() >= allowed) return null;
      const found = backlog.takeUnleased(admitsAccount(admits));
      if (found !== null) leasing++;
      return found;
    },
    addLeased: (assignment) => {
      leasing--;
      backlog.addLeased(assignment);
    },
    leaseEnded: () => {
      leasing--;
    },
    drop: backlog.drop,
    answered: ({ era, limitEra, accountId, accountEra }, accepted) => {
      suspension.answered(era);
      if (!accepted) return;
      limiter.delivered(limitEra);
      accounts.delivered(accountId, accountEra);
    },
    unreachable: ({ era }) => suspension.unreachable(era),
    throttled: ({ limitEra }, waitMs) => limiter.throttled(limitEra, waitMs, measuredPace()),
    senderThrottled: ({ accountId, accountEra }, waitMs) =>
      accounts.throttled(accountId, accountEra, waitMs, measuredPace()),
    hasAnswered: () => suspension.answers() > 0,
    isSuspended: suspension.isSuspended,
    suspendedMs: suspension.suspendedMs,
    pausedMs: limiter.pausedMs,
    isHalted,
    isPaused,
    connections: () => ({
      used: usedSlots.size,
      allowed: suspension.isSuspended() ? 0 : Math.min(limiter.connections(), suspension.allowed()),
    }),
    rateWaitMs: limiter.waitMs,
    accountPausedMs: accounts.pausedMs,
    limits: () => ({
      connections: limiter.connections(),
      perSecond: limiter.perSecond(),
      level: limiter.level(),
      since: limiter.memory()?.since ?? null,
      pausedMs: limiter.pausedMs(),
      suspendedMs: suspension.suspendedMs(),
      accounts: accounts.count(),
      inFlight: usedSlots.size,
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
    isObsolete: () =>
      usedSlots.size === 0 &&
      leasing === 0 &&
      backlog.waitingCount() === 0 &&
      backlog.isEmpty() &&
      // A site that the operator has paused is created again, and is paused again, when mail for it is read.
      !suspension.isSuspended() &&
      limiter.pausedMs() === 0 &&
      clock.now() - usedAt > OBSOLETE_AFTER_MS,
  };
  return site;
}

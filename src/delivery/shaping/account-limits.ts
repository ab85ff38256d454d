import type { Clock } from '../../core/clock.ts';
import { createLimiter, type Limiter, type LimiterMemory, type Limits } from './limiter.ts';

/**
 * The accounts that a site asked to send less: a reply about one sender slows the mail of its account to that site, and
 * no other mail. An account whose limits are the configured ones again is forgotten.
 */
export interface AccountSiteLimits {
  /** Whether the account may start one more message, of which `inFlight` are in progress. */
  admits(accountId: string, inFlight: number): boolean;
  /** Whether the limits of the account are reduced. */
  isLimited(accountId: string): boolean;
  /** Counts a message of the account toward its rate. Returns the epoch in which it began. */
  start(accountId: string): number;
  /** Milliseconds until the site takes mail of the account again; 0: now. */
  limitedMs(accountId: string): number;
  /** See `Limiter.throttled`. */
  throttled(accountId: string, epoch: number, waitMs: number | null, pace: number): number;
  delivered(accountId: string, epoch: number): void;
  configure(limits: Limits): void;
  /** Number of accounts with reduced limits. */
  count(): number;
  /** What is stored, by account. */
  memory(): ReadonlyMap<string, LimiterMemory>;
}

export interface AccountLimitsOptions {
  limits: Limits;
  clock: Clock;
  monotonic: Clock;
  memory?: ReadonlyMap<string, LimiterMemory> | undefined;
}

/** Accounts with reduced limits at one site; beyond it, the one that was slowed first is forgotten. */
const MAX_ACCOUNTS = 1000;

/** Limits of the accounts at almost all sites: there are none. */
const NONE: ReadonlyMap<string, LimiterMemory> = new Map();

/**
 * Restores the accounts in `memory`; at most 1000 are limited. An account whose limits are the configured ones again is
 * removed when `memory` is called.
 */
export function createSiteAccountLimits({
  clock,
  monotonic,
  memory,
  ...options
}: AccountLimitsOptions): AccountSiteLimits {
  let { limits } = options;
  const accounts = new Map<string, Limiter>();
  const add = (accountId: string, stored: LimiterMemory | null): Limiter => {
    const limiter = createLimiter({ limits, clock, monotonic, memory: stored });
    accounts.set(accountId, limiter);
    for (const oldest of accounts.keys()) {
      if (accounts.size <= MAX_ACCOUNTS) break;
      accounts.delete(oldest);
    }
    return limiter;
  };
  for (const [accountId, stored] of memory ?? []) add(accountId, stored);

  return {
    // Called for every message: almost always no account is limited.
    admits: (accountId, inFlight) => {
      if (accounts.size === 0) return true;
      const limiter = accounts.get(accountId);
      return limiter === undefined || (limiter.waitMs() === 0 && inFlight < limiter.connections());
    },
    isLimited: (accountId) => accounts.has(accountId),
    start: (accountId) => {
      const limiter = accounts.get(accountId);
      limiter?.start();
      return limiter?.epoch() ?? 0;
    },
    limitedMs: (accountId) => accounts.get(accountId)?.limitedMs() ?? 0,
    throttled: (accountId, epoch, waitMs, pace) =>
      (accounts.get(accountId) ?? add(accountId, null)).throttled(epoch, waitMs, pace),
    delivered: (accountId, epoch) => accounts.get(accountId)?.delivered(epoch),
    configure: (next) => {
      limits = next;
      for (const limiter of accounts.values()) limiter.configure(next);
    },
    count: () => accounts.size,
    memory: () => {
      if (accounts.size === 0) return NONE;
      const stored = new Map<string, LimiterMemory>();
      for (const [accountId, limiter] of accounts) {
        const own = limiter.memory();
        if (own === null) accounts.delete(accountId);
        else stored.set(accountId, own);
      }
      return stored;
    },
  };
}

import { LRUCache } from 'lru-cache';
import type { Clock } from '../core/clock.ts';
import { callerBlock } from './caller-addresses.ts';

/**
 * How often a key may call, and how often an address may fail to show a valid one. Token buckets in memory:
 * a restart forgives everybody. Memory is bounded; who falls out of it starts with a full bucket, so the
 * bound can only ever be kind. Nothing here delays a caller: it says no, and when to come again.
 */
export interface Rate {
  /** What a full bucket holds: calls at once. */
  burst: number;
  perSecond: number;
}

export interface RateReading {
  allowed: boolean;
  rate: Rate;
  /** Whole calls that are left. */
  remaining: number;
  /** Whole seconds until the bucket is full again. */
  fullAfterSeconds: number;
  /** Whole seconds until the next call is allowed, 0 when one is. */
  retryAfterSeconds: number;
}

interface Bucket {
  tokens: number;
  /** Epoch ms at which `tokens` was right. */
  at: number;
}

/** Buckets of one rate, at most `keep` of them, the least recently used forgotten first. */
export function createBuckets(clock: Clock, rate: Rate, keep: number) {
  const buckets = new LRUCache<string, Bucket>({ max: keep });

  return {
    take(name: string): RateReading {
      const now = clock.now();
      const bucket = buckets.get(name) ?? { tokens: rate.burst, at: now };
      // A clock that was set back must not empty the bucket.
      const passed = Math.max(0, now - bucket.at) / 1000;
      const filled = Math.min(rate.burst, bucket.tokens + passed * rate.perSecond);
      const allowed = filled >= 1;
      bucket.tokens = allowed ? filled - 1 : filled;
      bucket.at = now;
      buckets.set(name, bucket);
      return {
        allowed,
        rate,
        remaining: Math.floor(bucket.tokens),
        fullAfterSeconds: Math.ceil((rate.burst - bucket.tokens) / rate.perSecond),
        retryAfterSeconds: allowed ? 0 : Math.max(1, Math.ceil((1 - filled) / rate.perSecond)),
      };
    },
  };
}

/** The setup interface and sending are counted apart: a busy sender can still look at its domains. */
export type RateLane = 'setup' | 'send';

export interface RateLimits {
  /** Counts one call of a key; null where no limit is set. */
  take(keyId: string, lane: RateLane): RateReading | null;
  /** Counts the same call of the key's account; null where no limit is set. */
  takeOfAccount(accountId: string, lane: RateLane): RateReading | null;
}

const KEYS_REMEMBERED = 20_000;

/** Of each key; `account`: of all keys of an account together. Null: unlimited. */
export interface Rates {
  setup: Rate;
  send: Rate | null;
  account?: { setup: Rate };
}

export function createRateLimits(clock: Clock, rates: Rates): RateLimits {
  const lanes = {
    setup: createBuckets(clock, rates.setup, KEYS_REMEMBERED),
    send: rates.send === null ? null : createBuckets(clock, rates.send, KEYS_REMEMBERED),
  };
  const ofAccount =
    rates.account === undefined ? null : createBuckets(clock, rates.account.setup, KEYS_REMEMBERED);
  return {
    take: (keyId, lane) => lanes[lane]?.take(keyId) ?? null,
    takeOfAccount: (accountId, lane) => (lane === 'setup' ? (ofAccount?.take(accountId) ?? null) : null),
  };
}

export interface FailureLimits {
  /**
   * Counts one failed authentication from an address. Null: answer it as usual; else the seconds after which
   * the next one will be. Only failures come here, so a valid key is never held up by its neighbours.
   */
  count(address: string): number | null;
}

export const FAILURES_PER_MINUTE = 100;
const ADDRESSES_REMEMBERED = 20_000;

export function createFailureLimits(clock: Clock): FailureLimits {
  const rate = { burst: FAILURES_PER_MINUTE, perSecond: FAILURES_PER_MINUTE / 60 };
  const buckets = createBuckets(clock, rate, ADDRESSES_REMEMBERED);
  return {
    count: (address) => {
      const reading = buckets.take(callerBlock(address));
      return reading.allowed ? null : reading.retryAfterSeconds;
    },
  };
}

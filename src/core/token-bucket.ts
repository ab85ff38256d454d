import type { Clock } from './clock.ts';
import { createLru } from './lru.ts';

export interface Rate {
  /** Capacity of the bucket. */
  burst: number;
  /** Tokens added per second. */
  perSecond: number;
}

/** State of a bucket after a `take`, as rate limit headers report it. */
export interface RateReading {
  allowed: boolean;
  rate: Rate;
  /** Whole tokens that are left. */
  remaining: number;
  /** Whole seconds until the bucket is full again. */
  fullAfterSeconds: number;
  /** Whole seconds until the next token, 0 when one was taken. */
  retryAfterSeconds: number;
}

/**
 * A token bucket in memory. A clock that is set back adds no tokens and removes none.
 *
 * Creates a full bucket.
 */
export function createTokenBucket(clock: Clock, rate: Rate) {
  let tokens = rate.burst;
  let refilledAt = clock.now();

  function add(count: number): void {
    tokens = Math.min(rate.burst, tokens + count);
  }

  function refill(): void {
    const now = clock.now();
    add((Math.max(0, now - refilledAt) / 1000) * rate.perSecond);
    refilledAt = now;
  }

  return {
    /** Takes one token if there is one. */
    take: (): RateReading => {
      refill();
      const allowed = tokens >= 1;
      const retryAfterSeconds = allowed ? 0 : Math.max(1, Math.ceil((1 - tokens) / rate.perSecond));
      if (allowed) tokens -= 1;
      return {
        allowed,
        rate,
        remaining: Math.max(0, Math.floor(tokens)),
        fullAfterSeconds: Math.ceil((rate.burst - tokens) / rate.perSecond),
        retryAfterSeconds,
      };
    },
    /** Takes tokens unconditionally: the balance may become negative. A negative number returns tokens. */
    charge: (count: number): void => {
      refill();
      add(-count);
    },
    /** Milliseconds until the balance is at least `tokens`. Default: 0, no longer negative. */
    waitMs: (wanted: number = 0): number => {
      refill();
      return Math.max(0, Math.ceil(((wanted - tokens) / rate.perSecond) * 1000));
    },
  };
}

export type TokenBucket = ReturnType<typeof createTokenBucket>;

/**
 * Buckets of one rate by name, at most `max`. The least recently used is removed first; its name starts with a full
 * bucket again, so the bound never refuses a request that an unbounded map would allow.
 */
export function createTokenBuckets(clock: Clock, rate: Rate, max: number) {
  const buckets = createLru<TokenBucket>(max);
  return {
    of: (name: string): TokenBucket => {
      const known = buckets.get(name);
      if (known !== undefined) return known;
      const bucket = createTokenBucket(clock, rate);
      buckets.set(name, bucket);
      return bucket;
    },
  };
}

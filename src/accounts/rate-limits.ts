import type { Clock } from '../core/clock.ts';
import { createTokenBuckets, type Rate, type RateReading } from '../core/token-bucket.ts';
import { callerBlock } from './caller-addresses.ts';

/** The setup interface and sending have separate limits: a busy sender can still read its domains. */
export type RateClass = 'setup' | 'send';

const MAX_KEYS = 20_000;

/** Rates of each key; `account`: rates of all keys of an account together. Null: unlimited. */
export interface RateLimitOptions {
  setup: Rate;
  send: Rate | null;
  account?: { setup: Rate };
}

/**
 * Limits on API calls of a key, and on failed authentication from an address. Token buckets in memory: they are full
 * after a restart. A call above the limit is refused with the time of the next allowed one, never delayed. Begins with
 * full buckets, for up to 20,000 keys per class and 20,000 accounts in memory; one that was evicted begins full again.
 * Accounts have a limit for the class `setup` only.
 */
export function createRateLimits(clock: Clock, options: RateLimitOptions) {
  const bucketsOf = ({ setup, send, account }: RateLimitOptions) => ({
    ofKey: {
      setup: createTokenBuckets(clock, setup, MAX_KEYS),
      send: send === null ? null : createTokenBuckets(clock, send, MAX_KEYS),
    },
    ofAccount: account === undefined ? null : createTokenBuckets(clock, account.setup, MAX_KEYS),
  });
  let buckets = bucketsOf(options);
  return {
    /** Counts one call of a key; null where no limit is set. */
    take: (keyId: string, rateClass: RateClass): RateReading | null =>
      buckets.ofKey[rateClass]?.of(keyId).take() ?? null,
    /** Counts the same call of the key's account; null where no limit is set. */
    takeOfAccount: (accountId: string, rateClass: RateClass): RateReading | null =>
      rateClass === 'setup' ? (buckets.ofAccount?.of(accountId).take() ?? null) : null,
    /** Replaces the limits; every bucket is full afterwards. */
    configure: (next: RateLimitOptions): void => {
      buckets = bucketsOf(next);
    },
  };
}

export type RateLimits = ReturnType<typeof createRateLimits>;

export const FAILURES_PER_MINUTE = 100;
const MAX_ADDRESSES = 20_000;

/**
 * Begins with full buckets of 100 failures, refilled within a minute, one for each block of addresses that one caller
 * controls (`callerBlock`). Keeps up to 20,000 in memory; one that was evicted begins full again.
 */
export function createFailureLimits(clock: Clock) {
  const rate = { burst: FAILURES_PER_MINUTE, perSecond: FAILURES_PER_MINUTE / 60 };
  const buckets = createTokenBuckets(clock, rate, MAX_ADDRESSES);
  return {
    /**
     * Counts one failed authentication from an address. Null: the response is 401. A number: the response is 429, and
     * the number is the seconds until the response is 401 again. Only failures are counted: clients behind the same
     * address do not delay requests with a valid key.
     */
    count: (address: string): number | null => {
      const reading = buckets.of(callerBlock(address)).take();
      return reading.allowed ? null : reading.retryAfterSeconds;
    },
  };
}

export type FailureLimits = ReturnType<typeof createFailureLimits>;

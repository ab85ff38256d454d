import { describe, expect, it } from 'vitest';
import { createTokenBucket, createTokenBuckets } from '../../src/core/token-bucket.ts';
import { heldClock } from '../support/store.ts';

const RATE = { burst: 4, perSecond: 2 };

describe('a token bucket', () => {
  it('takes tokens until it is empty, and refills at its rate up to the burst', () => {
    const clock = heldClock();
    const bucket = createTokenBucket(clock, RATE);
    expect([1, 2, 3, 4, 5].map(() => bucket.take().remaining)).toEqual([3, 2, 1, 0, 0]);
    expect(bucket.take()).toEqual({
      allowed: false,
      rate: RATE,
      remaining: 0,
      fullAfterSeconds: 2,
      retryAfterSeconds: 1,
    });
    clock.advance(500);
    expect(bucket.take()).toMatchObject({ allowed: true, retryAfterSeconds: 0 });
    clock.advance(60_000);
    expect(bucket.take().remaining).toBe(3);
  });

  it('waits until a negative balance is refilled', () => {
    const clock = heldClock();
    const bucket = createTokenBucket(clock, RATE);
    bucket.charge(4);
    expect(bucket.waitMs()).toBe(0);
    bucket.charge(3);
    expect(bucket.waitMs()).toBe(1500);
    clock.advance(1000);
    expect(bucket.waitMs()).toBe(500);
    expect(bucket.take()).toMatchObject({ allowed: false, remaining: 0 });
  });

  it('returns tokens, never above the burst', () => {
    const bucket = createTokenBucket(heldClock(), RATE);
    bucket.charge(-10);
    expect(bucket.take().remaining).toBe(3);
  });

  it('is evicted when others were used more recently', () => {
    const buckets = createTokenBuckets(heldClock(), RATE, 2);
    buckets.of('one').charge(4);
    buckets.of('two').charge(1);
    expect(buckets.of('one').take().allowed).toBe(false);
    buckets.of('three').charge(1);
    expect(buckets.of('one').take().allowed).toBe(false);
    expect(buckets.of('two').take().remaining).toBe(3);
  });
});

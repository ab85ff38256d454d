import { describe, expect, it } from 'vitest';
import { createFailureLimits, createRateLimits } from '../../src/accounts/rate-limits.ts';

function heldClock() {
  const clock = { time: 1_000_000, now: () => clock.time };
  return clock;
}

const SETUP = { burst: 4, perSecond: 2 };

describe('the limit of a key', () => {
  it('allows a burst, reports the rest, and then refills by the second', () => {
    const clock = heldClock();
    const limits = createRateLimits(clock, { setup: SETUP, send: null });
    const remaining = [1, 2, 3, 4].map(() => limits.take('key', 'setup')?.remaining);

    expect(remaining).toEqual([3, 2, 1, 0]);
    expect(limits.take('key', 'setup')).toMatchObject({
      allowed: false,
      remaining: 0,
      retryAfterSeconds: 1,
      fullAfterSeconds: 2,
    });
    clock.time += 500;
    expect(limits.take('key', 'setup')?.allowed).toBe(true);
    expect(limits.take('key', 'setup')?.allowed).toBe(false);
    clock.time += 60_000;
    expect(limits.take('key', 'setup')).toMatchObject({ allowed: true, remaining: 3 });
  });

  it('is separate for each key and for sending', () => {
    const limits = createRateLimits(heldClock(), { setup: { burst: 1, perSecond: 1 }, send: SETUP });
    expect(limits.take('one', 'setup')?.allowed).toBe(true);
    expect(limits.take('one', 'setup')?.allowed).toBe(false);
    expect(limits.take('other', 'setup')?.allowed).toBe(true);
    expect(limits.take('one', 'send')).toMatchObject({ allowed: true, remaining: 3, rate: SETUP });
  });

  it('is absent on sending unless it is set', () => {
    const limits = createRateLimits(heldClock(), { setup: SETUP, send: null });
    expect(limits.take('key', 'send')).toBeNull();
  });

  it('is unchanged by a clock that is set back', () => {
    const clock = heldClock();
    const limits = createRateLimits(clock, { setup: SETUP, send: null });
    limits.take('key', 'setup');
    clock.time -= 3_600_000;
    expect(limits.take('key', 'setup')).toMatchObject({ allowed: true, remaining: 2 });
  });
});

describe('failed authentications', () => {
  const count = (limits: ReturnType<typeof createFailureLimits>, address: string, times: number) =>
    Array.from({ length: times }, () => limits.count(address)).at(-1);

  it.each([
    ['the same address', '192.0.2.1', '192.0.2.1', true],
    ['a neighbor', '192.0.2.1', '192.0.2.2', false],
    ['the same /64', '2001:db8:0:1::1', '2001:db8:0:1:ffff::2', true],
    ['the next /64', '2001:db8:0:1::1', '2001:db8:0:2::1', false],
    ['IPv4 written as IPv6', '192.0.2.1', '::ffff:192.0.2.1', true],
  ])('count together for %s', (_, first, second, together) => {
    const limits = createFailureLimits(heldClock());
    expect(count(limits, first, 100)).toBeNull();
    expect(limits.count(second) !== null).toBe(together);
  });

  it('expire, one every 0.6 seconds', () => {
    const clock = heldClock();
    const limits = createFailureLimits(clock);
    expect(count(limits, '192.0.2.1', 101)).toBe(1);
    clock.time += 600;
    expect(limits.count('192.0.2.1')).toBeNull();
    expect(limits.count('192.0.2.1')).toBe(1);
  });

  it('are counted for a bounded number of addresses: the oldest is removed', () => {
    const limits = createFailureLimits(heldClock());
    expect(count(limits, '192.0.2.1', 101)).not.toBeNull();
    for (let block = 0; block < 20_000; block++)
      limits.count(`2001:db8:${(block >> 8).toString(16)}:${(block & 255).toString(16)}::1`);
    expect(limits.count('192.0.2.1')).toBeNull();
  });
});

import { describe, expect, it } from 'vitest';
import { DAY, HOUR, MINUTE, SECOND } from '../../src/core/clock.ts';
import { retryAfterMs, waitAfter } from '../../src/webhooks/outcome.ts';

const dice = (share: number) => ({
  bytes: () => Buffer.alloc(0),
  below: (bound: number) => Math.floor(share * (bound - 1)),
});
const [low, middle, high] = [dice(0), dice(0.5), dice(1)];

describe('the schedule', () => {
  it.each([
    [1, 5 * SECOND],
    [2, 30 * SECOND],
    [3, 2 * MINUTE],
    [4, 10 * MINUTE],
    [5, 30 * MINUTE],
    [6, 2 * HOUR],
    [7, 5 * HOUR],
    [8, 10 * HOUR],
    [9, 14 * HOUR],
    [10, 20 * HOUR],
    [11, 24 * HOUR],
  ])('waits after failure %i for %i ms ± 20 %%', (failures, wait) => {
    expect(waitAfter(failures, null, low)).toBe(wait * 0.8);
    expect(waitAfter(failures, null, middle)).toBe(wait);
    expect(waitAfter(failures, null, high)).toBe(wait * 1.2);
  });

  it('ends with the twelfth failure', () => {
    expect(waitAfter(12, null, middle)).toBe(null);
    expect(waitAfter(12, MINUTE, middle)).toBe(null);
  });

  it('waits for the longer of Retry-After and the schedule', () => {
    expect(waitAfter(1, HOUR, middle)).toBe(HOUR);
    expect(waitAfter(2, SECOND, middle)).toBe(30 * SECOND);
  });
});

describe('Retry-After', () => {
  const now = Date.parse('2026-01-31T12:00:00Z');
  it.each([
    ['120', 120 * SECOND],
    [' 7 ', 7 * SECOND],
    ['0', 0],
    ['999999999', DAY],
    ['Sat, 31 Jan 2026 12:10:00 GMT', 10 * MINUTE],
    ['Sat, 31 Jan 2026 11:00:00 GMT', 0],
    ['Sun, 31 Jan 2027 12:00:00 GMT', DAY],
    ['soon', null],
    ['-5', null],
    ['1.5', null],
    ['2026', 2026 * SECOND],
    ['2026-01-31T13:00:00Z', null],
    ['Xxx, 99 Foo 2026 99:00:00 GMT', null],
    ['', null],
    [undefined, null],
  ])('parses %j as %j ms', (header, ms) => {
    expect(retryAfterMs(header, now)).toBe(ms);
  });
});

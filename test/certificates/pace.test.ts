import { describe, expect, it } from 'vitest';
import { renewalTime, retryDelay } from '../../src/certificates/pace.ts';
import { DAY, HOUR, MINUTE } from '../../src/core/clock.ts';

describe('retryDelay', () => {
  it.each([
    [1, 10 * MINUTE],
    [2, HOUR],
    [3, 2 * HOUR],
    [6, 16 * HOUR],
    [7, DAY],
    [1000, DAY],
  ])('after %i failures', (failures, wait) => {
    expect(retryDelay(failures)).toBe(wait);
  });

  it('allows fewer than five orders per hour', () => {
    for (let failures = 1; failures < 50; failures++) {
      const fourWaits = [0, 1, 2, 3].reduce((sum, more) => sum + retryDelay(failures + more), 0);
      expect(fourWaits).toBeGreaterThan(HOUR);
    }
  });
});

describe('renewalTime', () => {
  it.each([
    ['90 days', 90, 60],
    ['a year', 365, 335],
    ['45 days', 45, 30],
    ['6 days', 6, 4],
  ])('with a lifetime of %s (%i days): day %i', (_, lifetime, day) => {
    const notBefore = Date.UTC(2026, 0, 1);
    const renewal = renewalTime({ notBefore, notAfter: notBefore + lifetime * DAY });
    expect((renewal - notBefore) / DAY).toBe(day);
  });
});

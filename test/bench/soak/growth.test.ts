import { describe, expect, it } from 'vitest';
import { growthOf, type Sample, slope } from './growth.ts';

/** A sample every 5 s; `rssMiB` by number. */
function samples(count: number, rssMiB: (n: number) => number): Sample[] {
  return Array.from({ length: count }, (_, n) => ({
    seconds: n * 5,
    rssMiB: rssMiB(n),
    descriptors: 100,
    handles: 50,
    walMiB: 16,
    queued: 0,
  }));
}

const rss = (list: Sample[]) => growthOf(list).find(({ value }) => value === 'rssMiB');

describe('the growth of a soak test', () => {
  it('is the slope of the least-squares line', () => {
    expect(slope([0, 1, 2, 3], [1, 3, 5, 7])).toBe(2);
    expect(slope([0, 1, 2], [4, 0, 4])).toBe(0);
    expect(slope([1, 1], [2, 5])).toBe(0);
  });

  it('is measured in the second half only', () => {
    const growth = rss(samples(40, (n) => (n < 20 ? 100 + 10 * n : 300)));
    expect(growth?.rise).toBeCloseTo(0);
    expect(growth?.firstHalf).toBe(195);
    expect(growth?.mean).toBe(300);
  });

  it('is found when it exceeds the limit', () => {
    const growth = rss(samples(40, (n) => 300 + n));
    expect(growth?.rise).toBeCloseTo(19);
    expect(growth?.limit).toBeCloseTo(0.05 * 329.5);
  });

  it('is not a saw-tooth', () => {
    expect(rss(samples(40, (n) => 300 + 5 * (n % 4)))?.rise).toBeLessThan(5);
  });

  it('needs samples', () => {
    expect(() => growthOf(samples(3, () => 1))).toThrow('3 samples are too few');
  });
});

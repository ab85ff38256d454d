import { describe, expect, it } from 'vitest';
import { HOUR } from '../../src/core/clock.ts';
import { createTopLabels } from '../../src/core/top-labels.ts';

function start(max: number) {
  let at = 0;
  const dropped: string[] = [];
  const labels = createTopLabels({ max, now: () => at, onDropped: (value) => dropped.push(value) });
  const count = (value: string, times: number) =>
    Array.from({ length: times }, () => labels.labelOf(value)).at(-1);
  return {
    ...labels,
    dropped,
    count,
    advance: (ms: number) => {
      at += ms;
    },
  };
}

describe('the values of a bounded label', () => {
  it('are the first ones while there are few', () => {
    const { labelOf } = start(3);
    expect(['a', 'b', 'c', 'd', 'a'].map((value) => labelOf(value))).toEqual(['a', 'b', 'c', 'other', 'a']);
  });

  it('are replaced by one with clearly more volume', () => {
    const { count, dropped, values } = start(2);
    count('a', 100);
    count('b', 10);
    expect(count('c', 15)).toBe('other');
    expect(count('c', 10)).toBe('c');
    expect(dropped).toEqual(['b']);
    expect(values().toSorted()).toEqual(['a', 'c']);
  });

  it('do not alternate between values of equal volume', () => {
    const { labelOf, dropped } = start(1);
    for (let n = 0; n < 1000; n++) labelOf(n % 2 === 0 ? 'a' : 'b');
    expect(dropped).toEqual([]);
  });

  it('give way after they have been idle', () => {
    const { count, advance } = start(1);
    count('a', 1000);
    advance(24 * HOUR);
    expect(count('b', 5)).toBe('b');
  });

  it('stay bounded with any number of values', () => {
    const { labelOf, values } = start(10);
    for (let n = 0; n < 10_000; n++) labelOf(`value ${n}`);
    expect(values().length).toBe(10);
  });
});

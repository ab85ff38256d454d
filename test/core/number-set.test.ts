import { describe, expect, it } from 'vitest';
import { createNumberSet } from '../../src/core/number-set.ts';

describe('a set of numbers', () => {
  it('has what was added and not deleted, across pages', () => {
    const set = createNumberSet();
    const numbers = [0, 7, 8, 32_767, 32_768, 65_535, 9_007_199_254_740_991];
    for (const each of [...numbers, 9, 7]) set.add(each);
    set.delete(9);
    set.delete(100_000);
    expect([...set.values()]).toEqual(numbers);
    expect([...numbers, 9, 1, 40_775, 100_000].map((each) => set.has(each))).toEqual([
      ...numbers.map(() => true),
      false,
      false,
      false,
      false,
    ]);
  });
});

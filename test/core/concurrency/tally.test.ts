import { expect, it } from 'vitest';
import { createTally } from '../../../src/core/concurrency/tally.ts';

it('sums by key and in total, and forgets a key whose sum is 0', () => {
  const tally = createTally();
  tally.add('a', 2);
  tally.add('b', 1);
  tally.add('a', 3);
  expect([tally.of('a'), tally.of('b'), tally.of('c'), tally.total, tally.keys]).toEqual([5, 1, 0, 6, 2]);
  tally.add('a', -5);
  expect([tally.of('a'), tally.total, tally.keys]).toEqual([0, 1, 1]);
  tally.clear();
  expect([tally.of('b'), tally.total, tally.keys]).toEqual([0, 0, 0]);
});

it('counts what is held once, however often it is released', () => {
  const tally = createTally();
  const [first, second] = [tally.hold('a'), tally.hold('a')];
  expect(tally.of('a')).toBe(2);
  first();
  first();
  expect([tally.of('a'), tally.total]).toEqual([1, 1]);
  second();
  expect([tally.of('a'), tally.total, tally.keys]).toEqual([0, 0, 0]);
  const several = tally.hold('a', 5);
  expect([tally.of('a'), tally.total]).toEqual([5, 5]);
  several();
  several();
  expect([tally.of('a'), tally.total, tally.keys]).toEqual([0, 0, 0]);
});

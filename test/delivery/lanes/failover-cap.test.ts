import { expect, it } from 'vitest';
import { HOUR, MINUTE } from '../../../src/core/clock.ts';
import { createFailoverCap } from '../../../src/delivery/lanes/failover-cap.ts';
import { heldClock } from '../../support/store.ts';

const LIMITS = { share: 0.1, perHour: 1000 };

function takeAll(cap: ReturnType<typeof createFailoverCap>, account: string, limits = LIMITS): number {
  let taken = 0;
  while (cap.take(account, limits)) taken++;
  return taken;
}

it('admits a share of the attempts of an account, and a minimum', () => {
  const cap = createFailoverCap(heldClock());
  for (let n = 0; n < 500; n++) cap.countAttempt('acct_large');
  expect(takeAll(cap, 'acct_large')).toBe(50);
  expect(takeAll(cap, 'acct_small')).toBe(20);
});

it('limits all accounts together', () => {
  const cap = createFailoverCap(heldClock());
  const limits = { share: 1, perHour: 30 };
  expect(takeAll(cap, 'acct_one', limits)).toBe(20);
  expect(takeAll(cap, 'acct_two', limits)).toBe(10);
  expect(takeAll(cap, 'acct_three', limits)).toBe(0);
});

it('admits nothing with a share of 0', () => {
  expect(takeAll(createFailoverCap(heldClock()), 'acct_one', { share: 0, perHour: 1000 })).toBe(0);
});

it('counts the last hour only', () => {
  const clock = heldClock();
  const cap = createFailoverCap(clock);
  expect(takeAll(cap, 'acct_one')).toBe(20);
  clock.advance(HOUR - 6 * MINUTE);
  expect(takeAll(cap, 'acct_one')).toBe(0);
  clock.advance(6 * MINUTE);
  expect(takeAll(cap, 'acct_one')).toBe(20);
  clock.advance(30 * HOUR);
  expect(takeAll(cap, 'acct_one')).toBe(20);
});

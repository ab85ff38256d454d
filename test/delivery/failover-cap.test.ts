import { describe, expect, it } from 'vitest';
import { HOUR, MINUTE } from '../../src/core/clock.ts';
import { createFailoverCap } from '../../src/delivery/lanes.ts';
import { heldClock } from '../support/store.ts';

const LIMITS = { share: 0.1, perHour: 1000 };

const capOf = (clock: ReturnType<typeof heldClock>, stored: string | null = null) =>
  createFailoverCap({ clock, monotonic: clock }, stored);

function takeAll(cap: ReturnType<typeof createFailoverCap>, account: string, limits = LIMITS): number {
  let taken = 0;
  while (cap.take(account, limits)) taken++;
  return taken;
}

it('admits a share of the attempts of an account, and a minimum', () => {
  const cap = capOf(heldClock());
  for (let n = 0; n < 500; n++) cap.countAttempt('acct_large');
  expect(takeAll(cap, 'acct_large')).toBe(50);
  expect(takeAll(cap, 'acct_small')).toBe(20);
});

it('limits all accounts together', () => {
  const cap = capOf(heldClock());
  const limits = { share: 1, perHour: 30 };
  expect(takeAll(cap, 'acct_one', limits)).toBe(20);
  expect(takeAll(cap, 'acct_two', limits)).toBe(10);
  expect(takeAll(cap, 'acct_three', limits)).toBe(0);
});

it('admits nothing with a share of 0', () => {
  expect(takeAll(capOf(heldClock()), 'acct_one', { share: 0, perHour: 1000 })).toBe(0);
});

it('counts the last hour only', () => {
  const clock = heldClock();
  const cap = capOf(clock);
  expect(takeAll(cap, 'acct_one')).toBe(20);
  clock.advance(HOUR - 6 * MINUTE);
  expect(takeAll(cap, 'acct_one')).toBe(0);
  clock.advance(6 * MINUTE);
  expect(takeAll(cap, 'acct_one')).toBe(20);
  clock.advance(30 * HOUR);
  expect(takeAll(cap, 'acct_one')).toBe(20);
});

describe('after a restart', () => {
  /** The monotonic clock of the new process begins elsewhere. */
  const restarted = (cap: ReturnType<typeof createFailoverCap>, wallClock: ReturnType<typeof heldClock>) =>
    createFailoverCap({ clock: wallClock, monotonic: heldClock(5 * MINUTE + 1) }, cap.stored());

  it('counts the messages of the hour before it', () => {
    const wallClock = heldClock();
    const cap = createFailoverCap({ clock: wallClock, monotonic: heldClock() }, null);
    expect(takeAll(cap, 'acct_one')).toBe(20);
    for (let n = 0; n < 5; n++) expect(cap.take('acct_two', LIMITS)).toBe(true);
    const next = restarted(cap, wallClock);
    expect(takeAll(next, 'acct_one')).toBe(0);
    expect(takeAll(next, 'acct_two', { share: 1, perHour: 30 })).toBe(5);
    expect(takeAll(restarted(next, wallClock), 'acct_two', { share: 1, perHour: 30 })).toBe(0);
  });

  it('forgets what is an hour old', () => {
    const wallClock = heldClock();
    const cap = createFailoverCap({ clock: wallClock, monotonic: heldClock() }, null);
    expect(takeAll(cap, 'acct_one')).toBe(20);
    const stored = cap.stored();
    const next = () => createFailoverCap({ clock: wallClock, monotonic: heldClock(5 * MINUTE + 1) }, stored);
    wallClock.advance(50 * MINUTE);
    expect(takeAll(next(), 'acct_one')).toBe(0);
    wallClock.advance(15 * MINUTE);
    expect(takeAll(next(), 'acct_one')).toBe(20);
  });

  it('counts as now what a clock that was set back shows as the future', () => {
    const wallClock = heldClock();
    const cap = createFailoverCap({ clock: wallClock, monotonic: heldClock() }, null);
    expect(takeAll(cap, 'acct_one')).toBe(20);
    wallClock.advance(-30 * HOUR);
    expect(takeAll(restarted(cap, wallClock), 'acct_one')).toBe(0);
  });

  it('keeps the total of more accounts than it stores', () => {
    const wallClock = heldClock();
    const cap = createFailoverCap({ clock: wallClock, monotonic: heldClock() }, null);
    for (let n = 0; n < 1500; n++) cap.take(`acct_${n}`, { share: 1, perHour: 10_000 });
    expect(takeAll(restarted(cap, wallClock), 'acct_other', { share: 1, perHour: 1501 })).toBe(1);
  });

  it.each(['', '{}', '[1, ["acct_one"], ["acct_one", "x", 3]]', '[["acct_one", 1, 1.5]]'])(
    'begins without counts after a damaged text: %s',
    (stored) => {
      expect(takeAll(capOf(heldClock(), stored), 'acct_one')).toBe(20);
    },
  );
});

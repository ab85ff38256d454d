import { describe, expect, it } from 'vitest';
import { DAY, HOUR, MINUTE, SECOND } from '../../src/core/clock.ts';
import { createExpiryClock } from '../../src/core/expiry-clock.ts';
import { heldClock } from '../support/store.ts';

function start() {
  const monotonic = heldClock(1000);
  let offset = Date.UTC(2026, 0, 15, 12);
  const clock = { now: () => offset + monotonic.now() };
  const set = (ms: number) => {
    offset += ms;
  };
  return { clock, monotonic, set, expiry: createExpiryClock(clock, monotonic) };
}

describe.each([2 * DAY, 6 * HOUR, -2 * HOUR, -400 * DAY])('a clock that is set by %s ms', (step) => {
  it('expires nothing, in whatever order it is read', () => {
    const { clock, monotonic, set, expiry } = start();
    const before = clock.now();
    set(step);
    monotonic.advance(MINUTE);
    expect(expiry.now()).toBe(Math.min(before + MINUTE, clock.now()));
  });

  it('accepts mail with the times of the stored mail, until all of them are moved', () => {
    const { clock, monotonic, set, expiry } = start();
    const before = clock.now();
    set(step);
    monotonic.advance(MINUTE);
    expect(expiry.stepSinceLastCall()).toBe(step);
    expect(expiry.acceptedAt()).toBe(before + MINUTE);
    expiry.moved(step);
    expect([expiry.acceptedAt(), expiry.now()]).toEqual([clock.now(), clock.now()]);
    expect(expiry.stepSinceLastCall()).toBe(0);
  });

  it('is ignored when it is set again immediately, as by a wrong answer of a time server', () => {
    const { clock, set, expiry } = start();
    set(step);
    set(-step);
    expect(expiry.stepSinceLastCall()).toBe(0);
    expect(expiry.now()).toBe(clock.now());
  });
});

it('adds a second step to one whose messages are being moved', () => {
  const { clock, set, expiry } = start();
  set(DAY);
  expect(expiry.stepSinceLastCall()).toBe(DAY);
  set(HOUR);
  expect(expiry.stepSinceLastCall()).toBe(HOUR);
  expiry.moved(DAY);
  expect(expiry.now()).toBe(clock.now() - HOUR);
  expiry.moved(HOUR);
  expect(expiry.now()).toBe(clock.now());
});

it('follows a clock that is slewed', () => {
  const { clock, monotonic, set, expiry } = start();
  for (let n = 0; n < 100; n++) {
    monotonic.advance(SECOND);
    set(-100);
    expect(expiry.stepSinceLastCall()).toBe(0);
    expect([expiry.acceptedAt(), expiry.now()]).toEqual([clock.now(), clock.now()]);
  }
});

import { describe, expect, it } from 'vitest';
import { HOUR, MINUTE, SECOND } from '../../../src/core/clock.ts';
import { createLimiter, type LimiterMemory, type Limits } from '../../../src/delivery/shaping/limiter.ts';
import { heldClock } from '../../support/store.ts';

const CONFIGURED: Limits = { connections: 10, perSecond: 0 };

function createTestLimiter(limits = CONFIGURED, memory: LimiterMemory | null = null) {
  const clock = heldClock();
  const limiter = createLimiter({ limits, clock, monotonic: clock, memory });
  /** Throttles as a session that began now. */
  const throttle = (waitMs: number | null = null, pace = 64) =>
    limiter.throttled(limiter.epoch(), waitMs, pace);
  const deliver = (count: number) => {
    for (let n = 0; n < count; n++) limiter.delivered(limiter.epoch());
  };
  /** Starts messages as fast as the limiter allows for a time; returns how many. */
  const sendFor = (ms: number): number => {
    const end = clock.now() + ms;
    let sent = 0;
    for (;;) {
      const wait = limiter.waitMs();
      if (clock.now() + wait >= end) {
        clock.advance(end - clock.now());
        return sent;
      }
      clock.advance(wait);
      limiter.start();
      sent++;
    }
  };
  return { clock, limiter, throttle, deliver, sendFor };
}

describe('a site that asks to send less', () => {
  it('gets half of the connections with each step, and at least one', () => {
    const { limiter, throttle } = createTestLimiter();
    const connections = [limiter.connections()];
    for (let n = 0; n < 5; n++) {
      throttle();
      connections.push(limiter.connections());
    }
    expect(connections).toEqual([10, 5, 2, 1, 1, 1]);
  });

  it('is paused for a minute, then twice as long, at most half an hour', () => {
    const { limiter, throttle } = createTestLimiter();
    const pauses = Array.from({ length: 8 }, () => throttle() / MINUTE);
    expect(pauses).toEqual([1, 2, 4, 8, 16, 30, 30, 30]);
    expect(limiter.limitedMs()).toBe(30 * MINUTE);
  });

  it('is paused for the time that it names, within bounds', () => {
    const { throttle } = createTestLimiter();
    expect([throttle(90 * SECOND), throttle(1), throttle(24 * HOUR)]).toEqual([
      90 * SECOND,
      SECOND,
      4 * HOUR,
    ]);
  });

  it('is slowed once by the replies to sessions that began before', () => {
    const { limiter } = createTestLimiter();
    const before = limiter.epoch();
    expect(Array.from({ length: 10 }, () => limiter.throttled(before, null, 10))).toEqual([
      MINUTE,
      ...Array.from({ length: 9 }, () => 0),
    ]);
    expect(limiter.level()).toBe(1);
  });

  it('gets half of the rate at which mail was sent, and half of a configured rate', () => {
    const measured = createTestLimiter();
    expect(measured.limiter.perSecond()).toBeNull();
    measured.throttle(null, 64);
    expect(measured.limiter.perSecond()).toBe(32);
    measured.throttle(null, 1000);
    expect(measured.limiter.perSecond()).toBe(16);

    const configured = createTestLimiter({ connections: 10, perSecond: 20 });
    configured.throttle(null, 1000);
    expect(configured.limiter.perSecond()).toBe(10);
  });

  it('keeps a minimal rate', () => {
    const { limiter, throttle } = createTestLimiter();
    for (let n = 0; n < 20; n++) throttle(null, 1);
    expect(limiter.perSecond()).toBe(0.1);
  });
});

describe('the way back', () => {
  it('is one step for each hundred messages that were accepted since', () => {
    const { limiter, throttle, deliver } = createTestLimiter();
    throttle();
    throttle();
    deliver(99);
    expect(limiter.level()).toBe(2);
    deliver(1);
    expect(limiter.level()).toBe(1);
    deliver(100);
    expect([limiter.level(), limiter.connections(), limiter.perSecond()]).toEqual([0, 10, null]);
    expect(limiter.memory()).toBeNull();
  });

  it('does not count messages of sessions that began before', () => {
    const { limiter, throttle } = createTestLimiter();
    const before = limiter.epoch();
    throttle();
    for (let n = 0; n < 500; n++) limiter.delivered(before);
    expect(limiter.level()).toBe(1);
  });

  it('is one step for each ten minutes after the pause', () => {
    const { clock, limiter, throttle } = createTestLimiter();
    throttle();
    throttle();
    clock.advance(2 * MINUTE + 10 * MINUTE - 1);
    expect(limiter.level()).toBe(2);
    clock.advance(1);
    expect(limiter.level()).toBe(1);
    clock.advance(10 * MINUTE);
    expect(limiter.level()).toBe(0);
  });

  it('starts again with the next request', () => {
    const { clock, limiter, throttle } = createTestLimiter();
    throttle();
    clock.advance(6 * MINUTE);
    throttle();
    clock.advance(11 * MINUTE);
    expect(limiter.level()).toBe(2);
  });
});

describe('the rate', () => {
  it.each([0.5, 1, 7, 40])('keeps %d messages per second over a minute', (perSecond) => {
    const { sendFor } = createTestLimiter({ connections: 10, perSecond });
    // The bucket is full at the beginning.
    const burst = Math.max(1, perSecond);
    const sent = sendFor(MINUTE);
    expect(sent).toBeLessThanOrEqual(60 * perSecond + burst);
    expect(sent).toBeGreaterThanOrEqual(60 * perSecond - 1);
  });

  it('is not caught up after a pause', () => {
    const { clock, sendFor } = createTestLimiter({ connections: 10, perSecond: 10 });
    clock.advance(HOUR);
    expect(sendFor(10 * SECOND)).toBeLessThanOrEqual(110);
  });

  it('gives no burst when it changes', () => {
    const { throttle, sendFor, clock } = createTestLimiter({ connections: 10, perSecond: 100 });
    throttle(SECOND);
    clock.advance(SECOND);
    expect(sendFor(SECOND)).toBeLessThanOrEqual(51);
  });

  it('follows the configuration', () => {
    const { limiter, sendFor } = createTestLimiter({ connections: 10, perSecond: 100 });
    sendFor(SECOND);
    limiter.configure({ connections: 3, perSecond: 1 });
    expect(limiter.connections()).toBe(3);
    expect(sendFor(10 * SECOND)).toBeLessThanOrEqual(11);
    limiter.configure({ connections: 3, perSecond: 0 });
    expect(limiter.perSecond()).toBeNull();
  });
});

describe('a refusal because of our address', () => {
  it('resumes with one connection, and takes back one step after each hundred accepted messages', () => {
    const { clock, limiter, deliver } = createTestLimiter();
    expect(limiter.throttled(limiter.epoch(), 2 * HOUR, 64, true)).toBe(2 * HOUR);
    clock.advance(2 * HOUR);
    const connections = [limiter.connections()];
    for (let n = 0; n < 4; n++) {
      deliver(100);
      connections.push(limiter.connections());
    }
    expect(connections).toEqual([1, 2, 5, 10, 10]);
  });

  it('halves the rate, as one step does', () => {
    const { clock, limiter } = createTestLimiter();
    limiter.throttled(limiter.epoch(), 2 * HOUR, 64, true);
    clock.advance(2 * HOUR);
    expect(limiter.perSecond()).toBe(32);
  });
});

describe('a restriction', () => {
  it('of the connections does not limit the rate, also after a restart', () => {
    const { limiter } = createTestLimiter();
    limiter.restrict({ connections: 1 });
    expect([limiter.connections(), limiter.perSecond(), limiter.waitMs()]).toEqual([1, null, 0]);
    const restarted = createTestLimiter(CONFIGURED, limiter.memory()).limiter;
    expect([restarted.connections(), restarted.perSecond()]).toEqual([1, null]);
  });

  it('applies whatever the epoch, does not shorten a pause, and is taken back step by step', () => {
    const { clock, limiter, throttle, deliver } = createTestLimiter();
    throttle(HOUR);
    limiter.restrict({ pauseMs: MINUTE, connections: 2, perSecond: 1 / 6 });
    expect(limiter.limitedMs()).toBe(HOUR);
    clock.advance(HOUR);
    expect(limiter.connections()).toBe(2);
    expect(limiter.perSecond()).toBeCloseTo(1 / 6);
    deliver(100);
    expect(limiter.connections()).toBe(5);
    expect(limiter.perSecond()).toBeCloseTo(1 / 3);
  });
});

describe('a restart', () => {
  function restarted(downMs: number) {
    const before = createTestLimiter();
    before.throttle(null, 64);
    before.throttle(null, 64);
    const memory = before.limiter.memory();
    const clock = heldClock(before.clock.now() + downMs);
    const monotonic = heldClock(5);
    return { limiter: createLimiter({ limits: CONFIGURED, clock, monotonic, memory }), memory };
  }

  it('continues the pause and the limits', () => {
    const { limiter, memory } = restarted(30 * SECOND);
    expect([limiter.level(), limiter.connections(), limiter.perSecond()]).toEqual([2, 2, 16]);
    expect(limiter.limitedMs()).toBe(90 * SECOND);
    expect(limiter.memory()).toEqual(memory);
  });

  it('takes back the steps for the time without the daemon', () => {
    expect(restarted(12 * MINUTE).limiter.level()).toBe(1);
    expect(restarted(HOUR).limiter.level()).toBe(0);
  });

  it('does not prolong the pause when the clock was set back', () => {
    expect(restarted(-1000 * HOUR).limiter.limitedMs()).toBeLessThanOrEqual(4 * HOUR);
  });
});

it('what is stored stays the same object until it changes', () => {
  const { clock, limiter, throttle } = createTestLimiter();
  throttle();
  const first = limiter.memory();
  clock.advance(MINUTE);
  expect(limiter.memory()).toBe(first);
  throttle();
  expect(limiter.memory()).not.toBe(first);
  expect(limiter.memory()?.since).toBe(first?.since);
});

import { describe, expect, it } from 'vitest';
import { MINUTE, SECOND } from '../../src/core/clock.ts';
import { createPace } from '../../src/webhooks/pace.ts';

const FAILED = { slow: false, retryAfterMs: null };
const SLOW = { slow: true, retryAfterMs: null };

/** A pace at a time of its own; failures come one after another, each when the pause before is over. */
function start() {
  const pace = createPace();
  let now = 0;
  const pause = () => {
    const from = now;
    while (pace.width(now) === 0) now += SECOND / 2;
    return now - from;
  };
  return {
    pace,
    width: () => pace.width(now),
    fail: (how: Parameters<typeof pace.failed>[1], times = 1) => {
      for (let n = 0; n < times; n++) {
        pause();
        pace.failed(now, how);
      }
    },
    succeed: (times: number) => {
      for (let n = 0; n < times; n++) pace.succeeded();
    },
    pause,
    fresh: () => pace.fresh(now),
  };
}

describe('the pace of an endpoint', () => {
  it('is ten calls at once', () => {
    expect(start().width()).toBe(10);
  });

  it('does not mind a failure now and then', () => {
    const endpoint = start();
    for (let n = 0; n < 20; n++) {
      endpoint.fail(FAILED, 4);
      expect(endpoint.width()).toBe(10);
      endpoint.succeed(1);
    }
  });

  it('is halved, with growing pauses of a minute at most, when nothing but failures comes', () => {
    const endpoint = start();
    endpoint.fail(FAILED, 5);
    expect(endpoint.pause()).toBe(SECOND);
    expect(endpoint.width()).toBe(5);
    endpoint.fail(FAILED);
    expect(endpoint.pause()).toBe(2 * SECOND);
    expect(endpoint.width()).toBe(2);
    endpoint.fail(FAILED, 20);
    expect(endpoint.pause()).toBe(MINUTE);
    expect(endpoint.width()).toBe(1);
  });

  it('is halved at once when the endpoint says that it has too much to do', () => {
    const endpoint = start();
    endpoint.fail(SLOW);
    expect(endpoint.pause()).toBe(SECOND);
    expect(endpoint.width()).toBe(5);
  });

  it('takes calls that fail together for one trouble', () => {
    const endpoint = start();
    for (let n = 0; n < 10; n++) endpoint.pace.failed(0, SLOW);
    expect(endpoint.pause()).toBe(SECOND);
    expect(endpoint.width()).toBe(5);
  });

  it('rests as long as the endpoint asks', () => {
    const endpoint = start();
    endpoint.fail({ slow: false, retryAfterMs: 90 * SECOND });
    expect(endpoint.pause()).toBe(90 * SECOND);
  });

  it('comes back by one call with every success', () => {
    const endpoint = start();
    endpoint.fail(SLOW, 5);
    endpoint.pause();
    expect(endpoint.width()).toBe(1);
    endpoint.succeed(3);
    expect(endpoint.width()).toBe(4);
    expect(endpoint.fresh()).toBe(false);
    endpoint.succeed(20);
    expect(endpoint.width()).toBe(10);
    expect(endpoint.fresh()).toBe(true);
    endpoint.fail(SLOW);
    expect(endpoint.pause()).toBe(SECOND);
  });
});

import { describe, expect, it } from 'vitest';
import { MINUTE, SECOND } from '../../src/core/clock.ts';
import { createEndpointPace } from '../../src/webhooks/pace.ts';

const FAILED = { overloaded: false, retryAfterMs: null };
const SLOW = { overloaded: true, retryAfterMs: null };

/** A pace with its own clock; each failure follows the end of the pause before. */
function start() {
  const pace = createEndpointPace();
  let now = 0;
  const pause = () => {
    const from = now;
    while (pace.width(now) === 0) now += SECOND / 2;
    return now - from;
  };
  return {
    pace,
    width: () => pace.width(now),
    fail: (result: Parameters<typeof pace.failed>[1], times = 1) => {
      for (let n = 0; n < times; n++) {
        pause();
        pace.failed(now, result);
      }
    },
    succeed: (times: number) => {
      for (let n = 0; n < times; n++) pace.succeeded();
    },
    pause,
    isInitial: () => pace.isInitial(now),
  };
}

describe('the pace of an endpoint', () => {
  it('allows ten concurrent calls', () => {
    expect(start().width()).toBe(10);
  });

  it('ignores single failures', () => {
    const endpoint = start();
    for (let n = 0; n < 20; n++) {
      endpoint.fail(FAILED, 4);
      expect(endpoint.width()).toBe(10);
      endpoint.succeed(1);
    }
  });

  it('halves after consecutive failures, with growing pauses of at most a minute', () => {
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

  it('halves immediately when the endpoint is overloaded', () => {
    const endpoint = start();
    endpoint.fail(SLOW);
    expect(endpoint.pause()).toBe(SECOND);
    expect(endpoint.width()).toBe(5);
  });

  it('counts concurrent failures as one', () => {
    const endpoint = start();
    for (let n = 0; n < 10; n++) endpoint.pace.failed(0, SLOW);
    expect(endpoint.pause()).toBe(SECOND);
    expect(endpoint.width()).toBe(5);
  });

  it('pauses as long as Retry-After requests', () => {
    const endpoint = start();
    endpoint.fail({ overloaded: false, retryAfterMs: 90 * SECOND });
    expect(endpoint.pause()).toBe(90 * SECOND);
  });

  it('grows by one call with each success', () => {
    const endpoint = start();
    endpoint.fail(SLOW, 5);
    endpoint.pause();
    expect(endpoint.width()).toBe(1);
    endpoint.succeed(3);
    expect(endpoint.width()).toBe(4);
    expect(endpoint.isInitial()).toBe(false);
    endpoint.succeed(20);
    expect(endpoint.width()).toBe(10);
    expect(endpoint.isInitial()).toBe(true);
    endpoint.fail(SLOW);
    expect(endpoint.pause()).toBe(SECOND);
  });
});

import { describe, expect, it } from 'vitest';
import { MINUTE, SECOND } from '../../src/core/clock.ts';
import { createEndpointPace } from '../../src/webhooks/pace.ts';

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
    pausedUntil: () => pace.pausedUntil(now),
    overload: (retryAfterMs: number | null = null, times = 1) => {
      for (let n = 0; n < times; n++) {
        pause();
        pace.overloaded(now, retryAfterMs);
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

  it('halves when the endpoint is overloaded, with growing pauses of at most a minute', () => {
    const endpoint = start();
    endpoint.overload();
    expect(endpoint.pausedUntil()).toBe(SECOND);
    expect(endpoint.pause()).toBe(SECOND);
    expect(endpoint.pausedUntil()).toBeNull();
    expect(endpoint.width()).toBe(5);
    endpoint.overload();
    expect(endpoint.pause()).toBe(2 * SECOND);
    expect(endpoint.width()).toBe(2);
    endpoint.overload(null, 20);
    expect(endpoint.pause()).toBe(MINUTE);
    expect(endpoint.width()).toBe(1);
  });

  it('counts concurrent failures as one', () => {
    const endpoint = start();
    for (let n = 0; n < 10; n++) endpoint.pace.overloaded(0, null);
    expect(endpoint.pause()).toBe(SECOND);
    expect(endpoint.width()).toBe(5);
  });

  it('pauses as long as Retry-After requests', () => {
    const endpoint = start();
    endpoint.overload(90 * SECOND);
    expect(endpoint.pause()).toBe(90 * SECOND);
  });

  it('grows by one call with each success', () => {
    const endpoint = start();
    endpoint.overload(null, 5);
    endpoint.pause();
    expect(endpoint.width()).toBe(1);
    endpoint.succeed(3);
    expect(endpoint.width()).toBe(4);
    expect(endpoint.isInitial()).toBe(false);
    endpoint.succeed(20);
    expect(endpoint.width()).toBe(10);
    expect(endpoint.isInitial()).toBe(true);
    endpoint.overload();
    expect(endpoint.pause()).toBe(SECOND);
  });
});

import { MINUTE, SECOND } from '../core/clock.ts';

/**
 * How fast one endpoint is called: several concurrent calls while it responds, one call at a time with pauses while it
 * does not. An endpoint that is down costs one call a minute, however many deliveries wait for it.
 */
export interface EndpointPace {
  /** Concurrent calls that are allowed now; 0 during a pause. */
  width(now: number): number;
  succeeded(): void;
  /** `overloaded`: the endpoint replied that it is. */
  failed(now: number, result: { overloaded: boolean; retryAfterMs: number | null }): void;
  /** Whether the state is that of a new pace. */
  isInitial(now: number): boolean;
}

const MAX_WIDTH = 10;
/** Consecutive failures after which the endpoint is assumed to be down; fewer may be about the event. */
const MAX_FAILURES = 5;
const FIRST_PAUSE_MS = SECOND;
const MAX_PAUSE_MS = MINUTE;

/**
 * Begins with 10 concurrent calls. Five failures in a row, an overload or a `Retry-After` halve the number, and calls
 * pause for 1 s, doubled up to a minute. Has no timer: `now` is the caller's.
 */
export function createEndpointPace(): EndpointPace {
  let width = MAX_WIDTH;
  let failures = 0;
  let pauseMs = FIRST_PAUSE_MS;
  let pausedUntil = 0;

  return {
    width: (now) => (now < pausedUntil ? 0 : width),
    succeeded: () => {
      failures = 0;
      pauseMs = FIRST_PAUSE_MS;
      width = Math.min(MAX_WIDTH, width + 1);
    },
    failed: (now, { overloaded, retryAfterMs }) => {
      failures++;
      if (!overloaded && retryAfterMs === null && failures < MAX_FAILURES) return;
      // Concurrent calls fail together: they count as one failure.
      const isPaused = now < pausedUntil;
      pausedUntil = Math.max(pausedUntil, now + Math.max(isPaused ? 0 : pauseMs, retryAfterMs ?? 0));
      if (isPaused) return;
      width = Math.max(1, Math.floor(width / 2));
      pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS);
    },
    isInitial: (now) => now >= pausedUntil && width === MAX_WIDTH && failures === 0,
  };
}

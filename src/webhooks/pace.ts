import { MINUTE, SECOND } from '../core/clock.ts';

const MAX_WIDTH = 10;
const FIRST_PAUSE_MS = SECOND;
const MAX_PAUSE_MS = MINUTE;

/**
 * How fast one endpoint is called: several concurrent calls while it responds, fewer with pauses after it replied that
 * it is overloaded, or did not respond in time. Other failures are about the event: its retry waits, not the endpoint.
 * Begins with 10 concurrent calls. An overload halves the number, and calls pause for 1 s, doubled up to a minute, or
 * for the requested wait. Has no timer: `now` is the caller's.
 */
export function createEndpointPace() {
  let width = MAX_WIDTH;
  let pauseMs = FIRST_PAUSE_MS;
  let pausedUntil = 0;

  return {
    /** Concurrent calls that are allowed now; 0 during a pause. */
    width: (now: number): number => (now < pausedUntil ? 0 : width),
    /** When the pause ends; null: there is none. */
    pausedUntil: (now: number): number | null => (now < pausedUntil ? pausedUntil : null),
    succeeded: (): void => {
      pauseMs = FIRST_PAUSE_MS;
      width = Math.min(MAX_WIDTH, width + 1);
    },
    /** The endpoint is overloaded. `retryAfterMs`: the wait that it requested. */
    overloaded: (now: number, retryAfterMs: number | null): void => {
      // Concurrent calls fail together: they count as one failure.
      const isPaused = now < pausedUntil;
      pausedUntil = Math.max(pausedUntil, now + Math.max(isPaused ? 0 : pauseMs, retryAfterMs ?? 0));
      if (isPaused) return;
      width = Math.max(1, Math.floor(width / 2));
      pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS);
    },
    /** Whether the state is that of a new pace. */
    isInitial: (now: number): boolean => now >= pausedUntil && width === MAX_WIDTH,
  };
}

export type EndpointPace = ReturnType<typeof createEndpointPace>;

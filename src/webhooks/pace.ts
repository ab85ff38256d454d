import { MINUTE, SECOND } from '../core/clock.ts';

/**
 * How fast one endpoint is called: wide while it keeps up, one call at a time and pauses in between while it
 * does not. So an endpoint that is down costs a call a minute, however much waits for it.
 */
export interface Pace {
  /** Calls at once that it is good for now; 0 during a pause. */
  width(now: number): number;
  succeeded(): void;
  /** `slow`: it says itself that it has too much to do. */
  failed(now: number, how: { slow: boolean; retryAfterMs: number | null }): void;
  /** As if nothing had ever happened. */
  fresh(now: number): boolean;
}

const WIDEST = 10;
/** Failures in a row that are taken for the endpoint's, not the event's. */
const IN_TROUBLE = 5;
const FIRST_PAUSE = SECOND;
const LONGEST_PAUSE = MINUTE;

export function createPace(): Pace {
  let width = WIDEST;
  let streak = 0;
  let pause = FIRST_PAUSE;
  let pausedUntil = 0;

  return {
    width: (now) => (now < pausedUntil ? 0 : width),
    succeeded: () => {
      streak = 0;
      pause = FIRST_PAUSE;
      width = Math.min(WIDEST, width + 1);
    },
    failed: (now, { slow, retryAfterMs }) => {
      streak++;
      if (!slow && retryAfterMs === null && streak < IN_TROUBLE) return;
      // Calls that were under way together fail together: that is one trouble, not ten.
      const again = now < pausedUntil;
      pausedUntil = Math.max(pausedUntil, now + Math.max(again ? 0 : pause, retryAfterMs ?? 0));
      if (again) return;
      width = Math.max(1, Math.floor(width / 2));
      pause = Math.min(pause * 2, LONGEST_PAUSE);
    },
    fresh: (now) => now >= pausedUntil && width === WIDEST && streak === 0,
  };
}

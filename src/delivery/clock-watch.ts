import { type Clock, SECOND } from '../core/clock.ts';

/**
 * Notices that the system's clock was set: the wall clock and the monotonic one then no longer advance together.
 * Slewing, as time daemons do it, is far too slow to count. A machine that slept looks like one whose clock was
 * set forward.
 */
export interface ClockWatch {
  /** Whole milliseconds by which the clock was set since the last call, negative: back; 0 when it was not. */
  jumped(): number;
}

const SMALLEST_JUMP = 5 * SECOND;

export function createClockWatch(clock: Clock, monotonic: Clock): ClockWatch {
  let offset = clock.now() - monotonic.now();
  return {
    jumped: () => {
      const now = clock.now() - monotonic.now();
      // A monotonic clock has fractions of a millisecond; due times do not.
      const jump = Math.round(now - offset);
      offset = now;
      // A monotonic clock has fractions of a millisecond, which dates have not.
      return Math.abs(jump) < SMALLEST_JUMP ? 0 : Math.round(jump);
    },
  };
}

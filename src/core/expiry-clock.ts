import { type Clock, SECOND } from './clock.ts';

const MIN_STEP_MS = 5 * SECOND;

/**
 * The clock of the expiry of messages. Their expiry is stored as a date, but represents a duration ("two days after it was
 * accepted"): when the wall clock is set, the stored dates are moved by the step (delivery/clock-jumps). Until that is done,
 * this clock ignores the step, so that no message expires because of it, whichever part of the daemon reads the clock first.
 *
 * A step appears as a difference between the wall clock and the monotonic clock. Slewing by a time daemon is too slow to be one. A
 * machine that was suspended appears as one whose clock was set forward.
 *
 * `clock`: the wall clock. A difference below 5 s is no step, and is forgotten at the next call of `stepSinceLastCall`, so
 * that slewing never adds up to one.
 */
export function createExpiryClock(clock: Clock, monotonic: Clock) {
  const difference = () => clock.now() - monotonic.now();
  /** The difference when it was last measured. */
  let measured = difference();
  /** The difference that the stored dates are based on. */
  let stored = measured;

  /** Epoch ms from which the expiry of a message that is stored now counts: the move in progress includes the message. */
  function acceptedAt(): number {
    const now = clock.now();
    const steady = monotonic.now() + stored;
    // The monotonic clock has fractions of a millisecond; dates are integers.
    return Math.abs(now - steady) < MIN_STEP_MS ? now : Math.round(steady);
  }

  return {
    /**
     * Epoch ms; a message whose expiry is at or before it has expired. While stored dates are being moved, the earlier of the
     * times before and after the step: a message lives longer then, never shorter.
     */
    now: (): number => Math.min(clock.now(), acceptedAt()),
    acceptedAt,
    /** Milliseconds (an integer) by which the wall clock was set since the last call; negative: back; 0: it was not set. */
    stepSinceLastCall: (): number => {
      const before = measured;
      measured = difference();
      const step = Math.round(measured - before);
      if (Math.abs(step) >= MIN_STEP_MS) return step;
      stored += measured - before;
      return 0;
    },
    /** All stored dates were moved by `stepMs`. */
    moved: (stepMs: number): void => {
      stored += stepMs;
    },
  };
}

export type ExpiryClock = ReturnType<typeof createExpiryClock>;

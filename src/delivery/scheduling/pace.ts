import { type Clock, SECOND } from '../../core/clock.ts';

/** How many messages a site sends per second. */
export interface Pace {
  /** A message has left its slot. */
  count(): void;
  /** Messages in this second or the one before, whichever are more. `ofNew`: of a site in its first second. */
  measured(ofNew: () => number): number;
}

/** `clock`: monotonic. */
export function createPace(clock: Clock): Pace {
  /** Messages in the second that began at `since`, and in the one before; null: the site is new. */
  let pace: { since: number; now: number; before: number | null } = {
    since: clock.now(),
    now: 0,
    before: null,
  };

  function current(): typeof pace {
    const seconds = Math.floor((clock.now() - pace.since) / SECOND);
    if (seconds > 0)
      pace = { since: pace.since + seconds * SECOND, now: 0, before: seconds === 1 ? pace.now : 0 };
    return pace;
  }

  return {
    count: () => {
      current().now++;
    },
    measured: (ofNew) => {
      const { now, before } = current();
      return Math.max(now, before ?? ofNew());
    },
  };
}

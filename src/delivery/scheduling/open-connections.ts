import { type Clock, SECOND } from '../../core/clock.ts';

/**
 * The connections of all sites that are in use or idle. The workers keep a limited number of idle ones and close the oldest
 * for the next: if each site used all connections that it may have, those of many sites would be closed before they are
 * used again, and most messages would begin with a new connection. A site with a message in progress therefore opens
 * another connection only while fewer are open, or in place of one that was idle for some time; else it waits for one that it
 * has.
 */
export interface OpenConnections {
  /** Whether a message can be sent on the slot: its connection is open, or another may be opened. */
  mayUse(slot: SlotIdentity): boolean;
  began(slot: SlotIdentity): void;
  /** `open`: whether the connection is still open. */
  ended(slot: SlotIdentity, open: boolean): void;
}

/** Identifies a slot of a site; the same object at each call. */
export interface SlotIdentity {
  readonly slot: number;
}

export interface OpenConnectionsOptions {
  /** Idle connections that the workers keep, all together. */
  limit: number;
  /** Monotonic. */
  clock: Clock;
}

/** A connection that was idle for this long is closed for that of another slot. */
const MIN_IDLE_MS = 5 * SECOND;

/**
 * Counts what `began` and `ended` report. A connection that the server closes while it is idle counts as open until its
 * slot is used again or it is the oldest one when another needs its place.
 */
export function createOpenConnections({ limit, clock }: OpenConnectionsOptions): OpenConnections {
  /** Idle connections with the time since which they are, the oldest first. */
  const idle = new Map<SlotIdentity, number>();
  let used = 0;

  /** When the oldest idle connection was last used; null: none is idle. */
  function oldest(): { slot: SlotIdentity; since: number } | null {
    for (const [slot, since] of idle) return { slot, since };
    return null;
  }

  return {
    mayUse: (slot) => {
      if (idle.has(slot) || used + idle.size < limit) return true;
      const next = oldest();
      return next !== null && clock.now() - next.since >= MIN_IDLE_MS;
    },
    began: (slot) => {
      used++;
      if (idle.delete(slot) || used + idle.size <= limit) return;
      const next = oldest();
      if (next !== null) idle.delete(next.slot);
    },
    ended: (slot, open) => {
      used--;
      if (open) idle.set(slot, clock.now());
      if (idle.size <= limit) return;
      const next = oldest();
      if (next !== null) idle.delete(next.slot);
    },
  };
}

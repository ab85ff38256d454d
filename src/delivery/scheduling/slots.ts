import type { OpenConnections, SlotIdentity } from './open-connections.ts';

/** The slots of a site: one for each connection that it may have. */
export interface Slots {
  /** Number of slots in use. */
  used(): number;
  /**
   * Whether a slot is free, with at most `limit` in use. Only a site that uses another slot waits for an open connection:
   * the end of that message advances it.
   */
  hasFree(limit: number): boolean;
  /** Whether slots are free, but all open connections of the site are in use and no other may be opened. */
  waitsForConnection(): boolean;
  /** Takes the slot that was released last: its connection is still open, and connections that are not needed close. */
  take(): number;
  /** `open`: whether its connection is still open. */
  release(slot: number, open: boolean): void;
  /** Changes the number of slots. Those in use above it are removed when they are released. */
  configure(count: number): void;
}

export function createSlots(initial: number, connections: OpenConnections): Slots {
  const used = new Set<number>();
  const identities: SlotIdentity[] = [];
  let count = initial;
  /** The one to take next is the last. */
  let free = slotsBelow(count);

  const identityOf = (slot: number): SlotIdentity => {
    identities[slot] ??= { slot };
    return identities[slot];
  };
  const mayUse = (slot: number) => used.size === 0 || connections.mayUse(identityOf(slot));

  return {
    used: () => used.size,
    hasFree: (limit) => {
      const next = free.at(-1);
      return next !== undefined && used.size < limit && mayUse(next);
    },
    waitsForConnection: () => {
      const next = free.at(-1);
      return next !== undefined && !mayUse(next);
    },
    take: () => {
      const slot = free.pop() ?? 0;
      used.add(slot);
      connections.began(identityOf(slot));
      return slot;
    },
    release: (slot, open) => {
      used.delete(slot);
      connections.ended(identityOf(slot), open);
      if (slot < count) free.push(slot);
    },
    configure: (next) => {
      count = next;
      free = slotsBelow(count).filter((slot) => !used.has(slot));
    },
  };
}

/** In the order in which `pop` returns 0 first. */
function slotsBelow(count: number): number[] {
  return Array.from({ length: count }, (_, n) => count - 1 - n);
}

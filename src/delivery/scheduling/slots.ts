import { type Clock, SECOND } from '../../core/clock.ts';

export type Slots = ReturnType<typeof createSlots>;

export interface SlotProfile {
  /** Number of slots. */
  connections: number;
  messagesPerConnection: number;
  /** How long a connection stays open without a message, ms. */
  idleMs: number;
}

interface Slot extends SlotIdentity {
  /** Messages sent on its connection. */
  messages: number;
  /** When it was released. */
  since: number;
}

/**
 * The slots of a site: one for each connection that it may have.
 *
 * `clock`: monotonic.
 */
export function createSlots(initial: SlotProfile, connections: OpenConnections, clock: Clock) {
  let profile = initial;
  const used = new Set<Slot>();
  const slots: Slot[] = [];
  /** Free slots with an open connection, the one that was released last at the end. */
  let open: Slot[] = [];
  /** Free slots without one, the one that was released last at the end. */
  let closed = slotsBelow(profile.connections);

  function slotsBelow(count: number): Slot[] {
    for (let slot = slots.length; slot < count; slot++) slots.push({ slot, messages: 0, since: 0 });
    return slots.slice(0, count);
  }

  /** The slot to take next; undefined: none is free. */
  function next(): Slot | undefined {
    const last = open.at(-1);
    if (last !== undefined && clock.now() - last.since < profile.idleMs) return last;
    // The others were released before it.
    for (const slot of open) slot.messages = 0;
    closed.push(...open);
    open = [];
    return closed[0];
  }

  const mayUse = (slot: SlotIdentity) => used.size === 0 || connections.mayUse(slot);

  return {
    /** Number of slots in use. */
    used: (): number => used.size,
    /**
     * Whether a slot is free, with at most `limit` in use. Only a site that uses another slot waits for an open connection:
     * the end of that message advances it.
     */
    hasFree: (limit: number): boolean => {
      if (used.size >= limit) return false;
      const slot = next();
      return slot !== undefined && mayUse(slot);
    },
    /** Whether slots are free, but all open connections of the site are in use and no other may be opened. */
    waitsForConnection: (): boolean => {
      const slot = next();
      return slot !== undefined && !mayUse(slot);
    },
    /**
     * Takes the slot that was released last if its connection is still open, so that connections that are not needed close.
     * Else that which has had no connection for the longest time: source addresses belong to slots, and mail that needs one
     * connection at a time would otherwise always come from the same address.
     */
    take: (): number => {
      const slot = next();
      if (slot === undefined) throw new Error('a slot was taken although none is free');
      if (slot === open.at(-1)) open.pop();
      else closed.shift();
      used.add(slot);
      connections.began(slot);
      return slot.slot;
    },
    /** `answered`: whether the server has answered, so that its connection may still be open. */
    release: (number: number, answered: boolean): void => {
      const slot = slots[number];
      if (slot === undefined) throw new Error(`there is no slot ${number}`);
      used.delete(slot);
      slot.messages++;
      slot.since = clock.now();
      const isOpen = answered && profile.idleMs > 0 && slot.messages < profile.messagesPerConnection;
      if (!isOpen) slot.messages = 0;
      connections.ended(slot, isOpen);
      if (number >= profile.connections) return;
      if (isOpen) open.push(slot);
      else closed.push(slot);
    },
    /** Slots in use above the new number are removed when they are released. */
    configure: (changed: SlotProfile): void => {
      profile = changed;
      open = open.filter(({ slot }) => slot < changed.connections);
      closed = slotsBelow(changed.connections).filter((slot) => !used.has(slot) && !open.includes(slot));
    },
  };
}

export type OpenConnections = ReturnType<typeof createOpenConnections>;

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
 * The connections of all sites that are in use or idle. The workers keep a limited number of idle ones and close the oldest
 * for the next: if each site used all connections that it may have, those of many sites would be closed before they are
 * used again, and most messages would begin with a new connection. A site with a message in progress therefore opens
 * another connection only while fewer are open, or in place of one that was idle for some time; else it waits for one that it
 * has.
 *
 * Counts what `began` and `ended` report. A connection that the server closes while it is idle counts as open until its
 * slot is used again or it is the oldest one when another needs its place.
 */
export function createOpenConnections({ limit, clock }: OpenConnectionsOptions) {
  /** Idle connections with the time since which they are, the oldest first. */
  const idle = new Map<SlotIdentity, number>();
  let used = 0;

  /** When the oldest idle connection was last used; null: none is idle. */
  function oldest(): { slot: SlotIdentity; since: number } | null {
    for (const [slot, since] of idle) return { slot, since };
    return null;
  }

  return {
    /** Whether a message can be sent on the slot: its connection is open, or another may be opened. */
    mayUse: (slot: SlotIdentity): boolean => {
      if (idle.has(slot) || used + idle.size < limit) return true;
      const next = oldest();
      return next !== null && clock.now() - next.since >= MIN_IDLE_MS;
    },
    began: (slot: SlotIdentity): void => {
      used++;
      if (idle.delete(slot) || used + idle.size <= limit) return;
      const next = oldest();
      if (next !== null) idle.delete(next.slot);
    },
    /** `open`: whether the connection is still open. */
    ended: (slot: SlotIdentity, open: boolean): void => {
      used--;
      if (open) idle.set(slot, clock.now());
      if (idle.size <= limit) return;
      const next = oldest();
      if (next !== null) idle.delete(next.slot);
    },
  };
}

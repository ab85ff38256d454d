import { describe, expect, it } from 'vitest';
import { SECOND } from '../../../src/core/clock.ts';
import {
  createOpenConnections,
  createSlots,
  type SlotProfile,
  type Slots,
} from '../../../src/delivery/scheduling/slots.ts';
import { heldClock } from '../../support/store.ts';

const PROFILE: SlotProfile = { connections: 3, messagesPerConnection: 100, idleMs: 2 * SECOND };

function createTestSlots(profile: Partial<SlotProfile> = {}) {
  const clock = heldClock();
  const openConnections = createOpenConnections({ limit: 100, clock });
  return { clock, slots: createSlots({ ...PROFILE, ...profile }, openConnections, clock) };
}

/** The slots of `count` messages, each sent after the one before. */
function oneAtATime(slots: Slots, count: number, answered = true): number[] {
  return Array.from({ length: count }, () => {
    const slot = slots.take();
    slots.release(slot, answered);
    return slot;
  });
}

describe('the slots of a site', () => {
  it('use the connection that is open', () => {
    expect(oneAtATime(createTestSlots().slots, 5)).toEqual([0, 0, 0, 0, 0]);
  });

  it('use the connection that was used last, so that the others close', () => {
    const { slots } = createTestSlots();
    const both = [slots.take(), slots.take()];
    for (const slot of both) slots.release(slot, true);
    expect(oneAtATime(slots, 3)).toEqual([1, 1, 1]);
  });

  it('take turns when a connection has sent all messages that it may', () => {
    expect(oneAtATime(createTestSlots({ messagesPerConnection: 2 }).slots, 8)).toEqual([
      0, 0, 1, 1, 2, 2, 0, 0,
    ]);
  });

  it('take turns when connections close before the next message', () => {
    const { clock, slots } = createTestSlots();
    const used = Array.from({ length: 4 }, () => {
      const [slot] = oneAtATime(slots, 1);
      clock.advance(2 * SECOND);
      return slot;
    });
    expect(used).toEqual([0, 1, 2, 0]);
  });

  it('take turns when connections are not kept', () => {
    expect(oneAtATime(createTestSlots({ idleMs: 0 }).slots, 4)).toEqual([0, 1, 2, 0]);
  });

  it('take turns while the server does not answer', () => {
    expect(oneAtATime(createTestSlots().slots, 4, false)).toEqual([0, 1, 2, 0]);
  });

  it('are as many as the profile states', () => {
    const { slots } = createTestSlots();
    const used = [slots.take(), slots.take(), slots.take()];
    expect(slots.hasFree(10)).toBe(false);
    slots.configure({ ...PROFILE, connections: 1 });
    for (const slot of used) slots.release(slot, true);
    expect(oneAtATime(slots, 2)).toEqual([0, 0]);
    slots.configure({ ...PROFILE, connections: 2, messagesPerConnection: 1 });
    expect(oneAtATime(slots, 3)).toEqual([0, 1, 0]);
  });
});

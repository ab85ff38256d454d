import { describe, expect, it } from 'vitest';
import { createLog } from '../../src/core/log.ts';
import { createPressure } from '../../src/sending/pressure.ts';
import { startStore } from '../support/store.ts';

describe('sends', () => {
  it('are refused while outcomes of deliveries cannot be recorded', async () => {
    const { tables } = startStore();
    const log = createLog({ level: 'silent', hashAddresses: true });
    let fault: string | null = null;
    const limits = { queuedMessages: 100, freeDiskBytes: 0 };
    const pressure = createPressure({ tables, log, dir: '.', unrecorded: () => fault, ...limits });
    await pressure.start();
    pressure.stop();
    expect(pressure.refusal()).toBeNull();
    fault = 'outcomes cannot be recorded since 3 s: database disk image is malformed';
    expect(pressure.refusal()).toMatchObject({
      code: 'UNAVAILABLE',
      // The database's own words are not for callers.
      message: 'Nothing was accepted: outcomes of deliveries cannot be recorded',
      extras: { retryAfter: 30 },
    });
    fault = null;
    expect(pressure.refusal()).toBeNull();
  });
});

describe('the room that campaigns have in the queue', () => {
  it.each([
    { bound: 1000, before: 0, since: 0, room: 900, why: 'the last tenth is everybody else’s' },
    { bound: 1000, before: 300, since: 500, room: 100, why: 'what came since the last look counts' },
    { bound: 1000, before: 950, since: 0, room: 0, why: 'in the last tenth there is none' },
    { bound: 1000, before: 5000, since: 0, room: 0, why: 'nor over the bound' },
    { bound: 1, before: 0, since: 0, room: 1, why: 'a bound of one is no standstill' },
    {
      bound: 5_000_000,
      before: 1000,
      since: 500,
      room: 4_499_000,
      why: 'a large queue is not counted again',
    },
  ])('$room of $bound: $why', async ({ bound, before, since, room }) => {
    const { tables } = startStore();
    let count = before;
    tables.queue.count = () => count;
    const log = createLog({ level: 'silent', hashAddresses: true });
    const limits = { queuedMessages: bound, freeDiskBytes: 0 };
    const pressure = createPressure({ tables, log, dir: '.', ...limits });
    await pressure.start();
    pressure.stop();
    count += since;
    expect(pressure.room()).toBe(room);
    expect(pressure.refusal() !== null).toBe(before >= bound);
  });
});

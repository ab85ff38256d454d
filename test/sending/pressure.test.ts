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
    await pressure.stop();
    expect(pressure.refusal()).toBeNull();
    fault = 'outcomes could not be recorded for 3 s: database disk image is malformed';
    expect(pressure.refusal()).toMatchObject({
      code: 'UNAVAILABLE',
      // Callers do not see the message of the database.
      message: 'Nothing was accepted: outcomes of deliveries cannot be recorded',
      extras: { retryAfter: 30 },
    });
    fault = null;
    expect(pressure.refusal()).toBeNull();
  });
});

describe('the capacity of the queue for campaigns', () => {
  it.each([
    { bound: 1000, before: 0, since: 0, capacity: 900, why: 'the last tenth is reserved' },
    { bound: 1000, before: 300, since: 500, capacity: 100, why: 'messages since the last check count' },
    { bound: 1000, before: 950, since: 0, capacity: 0, why: 'none within the last tenth' },
    { bound: 1000, before: 5000, since: 0, capacity: 0, why: 'none above the limit' },
    { bound: 1, before: 0, since: 0, capacity: 1, why: 'one for a limit of one' },
    {
      bound: 5_000_000,
      before: 1000,
      since: 500,
      capacity: 4_499_000,
      why: 'a large queue is not counted again',
    },
  ])('$capacity of $bound: $why', async ({ bound, before, since, capacity }) => {
    const { tables } = startStore();
    let count = before;
    tables.queue.count = () => count;
    const log = createLog({ level: 'silent', hashAddresses: true });
    const limits = { queuedMessages: bound, freeDiskBytes: 0 };
    const pressure = createPressure({ tables, log, dir: '.', ...limits });
    await pressure.start();
    await pressure.stop();
    count += since;
    expect(pressure.capacity()).toBe(capacity);
    expect(pressure.refusal() !== null).toBe(before >= bound);
  });
});

import { describe, expect, it } from 'vitest';
import { createLog } from '../../src/core/log.ts';
import { createPressure } from '../../src/sending/pressure.ts';
import { createLocalReader } from '../../src/store/readers/reads.ts';
import { insertDomain } from '../support/rows.ts';
import { enqueue, insertAccount, startStore } from '../support/store.ts';

describe('sends', () => {
  it('are refused while outcomes of deliveries cannot be recorded', async () => {
    const { tables } = startStore();
    const log = createLog({ level: 'silent', hashAddresses: true });
    let fault: string | null = null;
    const limits = { queuedMessages: 100, freeDiskBytes: 0 };
    const reader = createLocalReader(tables);
    const pressure = createPressure(
      { config: { data: { dir: '.' }, limits }, tables, reader, log },
      { unrecorded: () => fault },
    );
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

describe('a full queue', () => {
  async function pressureWith(queued: Record<string, number>, queuedMessages: number) {
    const { tables, clock } = startStore();
    for (const [account, count] of Object.entries(queued)) {
      insertAccount(tables, account, clock.now());
      const domain = { domain_id: `domain_${account}`, account_id: account, name: `${account}.example` };
      insertDomain(tables, domain, clock.now());
      for (let n = 0; n < count; n++)
        enqueue(tables, clock.now(), { account_id: account, domain_id: `domain_${account}` });
    }
    const logged: string[] = [];
    const log = createLog(
      { level: 'warn', hashAddresses: true },
      { write: (line) => logged.push(JSON.parse(line).msg) },
    );
    const reader = createLocalReader(tables);
    const pressure = createPressure(
      { config: { data: { dir: '.' }, limits: { queuedMessages, freeDiskBytes: 0 } }, tables, reader, log },
      {},
    );
    await pressure.start();
    await pressure.stop();
    const refused = Object.keys(queued).filter((account) => pressure.refusal(account) !== null);
    return { pressure, refused, logged };
  }

  it('accepts mail of all accounts below its limit, however many messages one has', async () => {
    const { refused, pressure, logged } = await pressureWith({ acct_large: 88, acct_small: 1 }, 90);
    expect(refused).toEqual([]);
    expect(pressure.refusal()).toBeNull();
    expect(logged).toEqual([]);
  });

  it('refuses the mail of the account that filled it, and accepts that of others', async () => {
    const { refused, pressure, logged } = await pressureWith({ acct_large: 91, acct_small: 1 }, 90);
    expect(refused).toEqual(['acct_large']);
    expect(pressure.refusal('acct_large')).toMatchObject({
      code: 'UNAVAILABLE',
      message: 'Nothing was accepted: the queue has 92 messages, and its limit is 90',
    });
    expect(pressure.refusal('acct_without_messages')).toBeNull();
    // For `/readyz`: the mail of some is refused.
    expect(pressure.refusal()).not.toBeNull();
    expect(logged).toEqual(['refusing new mail']);
  });

  it('refuses several accounts that filled it together, each above 9 times what is left', async () => {
    const { refused } = await pressureWith({ acct_large: 48, acct_medium: 47, acct_small: 2 }, 90);
    // 97 of 100: 3 are left, so that an account may have 27.
    expect(refused).toEqual(['acct_large', 'acct_medium']);
  });

  it('refuses the mail of all when the reserve is used', async () => {
    const { refused, pressure } = await pressureWith({ acct_large: 60, acct_small: 40 }, 90);
    expect(refused).toEqual(['acct_large', 'acct_small']);
    expect(pressure.refusal('acct_without_messages')).not.toBeNull();
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
    const pressure = createPressure(
      { config: { data: { dir: '.' }, limits }, tables, reader: createLocalReader(tables), log },
      {},
    );
    await pressure.start();
    await pressure.stop();
    count += since;
    expect(pressure.capacity()).toBe(capacity);
    expect(pressure.refusal() !== null).toBe(before >= bound);
  });
});

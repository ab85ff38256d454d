import { describe, expect, it } from 'vitest';
import { changeLimits, createAccountLimits, readLimits } from '../../src/accounts/limits.ts';
import { DAY, HOUR, MINUTE } from '../../src/core/clock.ts';
import { heldClock, insertAccount, startStore } from '../support/store.ts';

function start(defaults = {}) {
  const clock = heldClock();
  const store = startStore(clock, defaults);
  insertAccount(store.tables, 'acct_two', clock.now());
  const { writer, limits } = store;
  return {
    ...store,
    take: (messages: number, accountId = 'acct_one') =>
      writer.run((tx) => limits.takeMessages(tx, accountId, messages, clock.now())),
    set: (changes: Parameters<typeof changeLimits>[2], accountId = 'acct_one') =>
      changeLimits({ writer, clock }, accountId, changes),
  };
}

describe('limits of an account', () => {
  it('are the configured defaults until one is set, and again afterwards', async () => {
    const { limits, set } = start({ domains: 7 });
    expect(limits.of('acct_one')).toMatchObject({ domains: 7, contacts: null, messagesPerDay: null });
    await set({ domains: 2, contacts: 0 });
    expect(limits.of('acct_one')).toMatchObject({ domains: 2, contacts: 0 });
    expect(limits.of('acct_two')).toMatchObject({ domains: 7, contacts: null });
    await set({ domains: null });
    expect(limits.of('acct_one')).toMatchObject({ domains: null, contacts: 0 });
    await set({ domains: 'default' });
    expect(limits.of('acct_one')).toMatchObject({ domains: 7, contacts: 0 });
  });

  it('are refused for an unknown account', async () => {
    const { set } = start();
    expect(await set({ domains: 2 }, 'acct_none')).toMatchObject({ code: 'ACCOUNT_NOT_FOUND' });
  });
});

describe('messages per hour', () => {
  it('are exact under concurrency, and refused sends do not count', async () => {
    const { take } = start({ messagesPerHour: 10 });
    const results = await Promise.all(Array.from({ length: 30 }, () => take(3)));
    expect(results.filter((result) => result === null)).toHaveLength(3);
    expect(await take(1)).toBeNull();
    expect(await take(1)).toMatchObject({
      code: 'RATE_LIMITED',
      message: "This account's limit of 10 messages per hour does not allow 1 recipient now",
      extras: {
        details: [{ name: 'messagesPerHour' }],
        limit: { name: 'messages-per-hour', calls: 10, seconds: 3600 },
      },
    });
    expect(await take(10, 'acct_two')).toBeNull();
  });

  it('name the largest number that a send can have when it can never fit', async () => {
    const { take } = start({ messagesPerHour: 10 });
    expect(await take(11)).toMatchObject({
      code: 'RATE_LIMITED',
      message:
        "This account's limit of 10 messages per hour does not allow 11 recipients in one request: send to at most 10 at a time",
    });
  });

  it('apply to every hour, whenever it begins', async () => {
    const { take, clock } = start({ messagesPerHour: 12 });
    const sent: number[] = [];
    for (let minute = 0; minute < 300; minute++) {
      for (let n = 0; n < 3; n++) if ((await take(1)) === null) sent.push(clock.now());
      clock.advance(MINUTE);
    }
    const worst = sent.map((at) => sent.filter((other) => other >= at && other < at + HOUR).length);
    expect(Math.max(...worst)).toBe(12);
    // Nearly as many as the limit allows are sent.
    expect(sent.length).toBeGreaterThanOrEqual(48);
  });

  it('report after what time a refused send fits', async () => {
    const { take, clock } = start({ messagesPerHour: 10 });
    await take(4);
    clock.advance(20 * MINUTE);
    await take(6);
    const refused = await take(4);
    const wait = refused?.extras.retryAfter ?? 0;
    clock.advance(wait * 1000 - 2000);
    expect(await take(4)).not.toBeNull();
    clock.advance(2000);
    expect(await take(4)).toBeNull();
  });

  it('include the limit per day, and report which limit is reached', async () => {
    const { take, clock } = start({ messagesPerHour: 10, messagesPerDay: 15 });
    await take(10);
    clock.advance(2 * HOUR);
    expect(await take(6)).toMatchObject({ extras: { details: [{ name: 'messagesPerDay' }] } });
    expect(await take(5)).toBeNull();
    clock.advance(DAY);
    expect(await take(10)).toBeNull();
  });

  it('survive a restart and keep a bounded number of rows', async () => {
    const { limits, writer, clock, tables, db } = start();
    await writer.run((tx) => {
      for (let n = 0; n < 400; n++) {
        limits.takeMessages(tx, 'acct_one', 1, clock.now());
        clock.advance(10 * MINUTE);
      }
    });
    const rows = db.prepare<[], number>('SELECT count(*) FROM message_counts').pluck().get();
    expect(rows).toBeLessThan(150);
    // Another daemon with the same database and new limits.
    const next = createAccountLimits({ tables, defaults: { messagesPerDay: 150 } });
    const { left } = next.allowance(tables, 'acct_one', clock.now());
    expect(left).toBeGreaterThan(0);
    expect(left).toBeLessThan(10);
  });

  it('report how many more messages are allowed now, and when', async () => {
    const { take, limits, tables, clock } = start({ messagesPerHour: 5 });
    await take(3);
    expect(limits.allowance(tables, 'acct_one', clock.now()).left).toBe(2);
    await take(2);
    const { left, moreAt } = limits.allowance(tables, 'acct_one', clock.now());
    expect(left).toBe(0);
    clock.advance(moreAt - clock.now());
    expect(limits.allowance(tables, 'acct_one', clock.now()).left).toBe(5);
  });
});

describe('the usage of an account', () => {
  it('contains value, origin and use of each limit', async () => {
    const { take, set, tables, clock } = start();
    await take(3);
    await set({ messagesPerHour: 5 });
    const readings = readLimits(tables, { domains: 100 }, 'acct_one', clock.now());
    expect(readings).toEqual([
      { limit: 'domains', value: 100, isDefault: true, used: 1 },
      { limit: 'webhooks', value: null, isDefault: true, used: 0 },
      { limit: 'templates', value: null, isDefault: true, used: 0 },
      { limit: 'contacts', value: null, isDefault: true, used: 0 },
      { limit: 'messagesPerHour', value: 5, isDefault: false, used: 3 },
      { limit: 'messagesPerDay', value: null, isDefault: true, used: 3 },
      { limit: 'concurrentRequests', value: null, isDefault: true, used: null },
      { limit: 'storedBytes', value: null, isDefault: true, used: 0 },
      { limit: 'campaigns', value: null, isDefault: true, used: 0 },
      { limit: 'subscriptionGroups', value: null, isDefault: true, used: 0 },
      { limit: 'suppressions', value: null, isDefault: true, used: 0 },
    ]);
  });
});

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DAY } from '../../../src/core/clock.ts';
import type { ApiClient } from '../../support/api-client.ts';
import { type InProcess, startInProcess } from '../../support/in-process-daemon.ts';
import { enqueue, insertDomain } from '../../support/store.ts';

/* Operations on many messages of the queue. */
let daemon: InProcess;
let shop: ApiClient;
let other: ApiClient;

beforeAll(async () => {
  daemon = await startInProcess();
  shop = await daemon.account('Shop');
  other = await daemon.account('Other');
  // All mail waits: a retry only changes when it is due.
  const pause = { action: 'pause', reason: 'Test', until: null, scope: 'pool', target: 'default' };
  expect(await shop.post('/web-setup/queue/controls', pause)).toMatchObject({ status: 201 });
  for (const { accountId } of [shop, other]) {
    const [group] = daemon.tables.domainGroups.list(accountId);
    insertDomain(
      daemon.tables,
      {
        account_id: accountId,
        group_id: group?.group_id ?? '',
        domain_id: `domain_${accountId}`,
        name: `${accountId.replace('_', '-')}.test`,
        next_check_at: Date.now() + DAY,
      },
      Date.now(),
    );
  }
});
afterAll(() => daemon?.stop());

function waiting(client: ApiClient, recipient: string, status: 'queued' | 'deferred'): number {
  const now = Date.now();
  const { accountId } = client;
  const { seq } = enqueue(daemon.tables, now, {
    account_id: accountId,
    domain_id: `domain_${accountId}`,
    recipient,
    dueAt: now + DAY,
  });
  if (status === 'deferred') daemon.tables.messages.setState(seq, status, now, null, null);
  return seq;
}

const dueIn = (seq: number) => (daemon.tables.queue.get(seq)?.due_at ?? 0) - Date.now();
const retry = (body: object) =>
  shop.post<{ matched: number; changed: number; next: number | null }>('/web-setup/queue/retry', body);

describe('POST /web-setup/queue/retry', () => {
  it('makes the deferred messages to a destination due, after a count', async () => {
    const deferred = Array.from({ length: 30 }, () => waiting(shop, 'ada@retried.test', 'deferred'));
    const others = [waiting(shop, 'ada@retried.test', 'queued'), waiting(shop, 'ada@kept.test', 'deferred')];
    const filter = { destination: 'Retried.test' };
    expect(await retry({ filter, dryRun: true })).toMatchObject({
      status: 200,
      data: { matched: 30, changed: 0, next: null },
    });
    expect(deferred.every((seq) => dueIn(seq) > DAY / 2)).toBe(true);
    expect(await retry({ filter })).toMatchObject({
      status: 200,
      data: { matched: 30, changed: 30, skipped: 0, next: null },
    });
    expect(deferred.every((seq) => dueIn(seq) <= 0)).toBe(true);
    expect(others.every((seq) => dueIn(seq) > DAY / 2)).toBe(true);
  });

  it('retries the messages of an account, and continues after a number', async () => {
    const [first = 0, second = 0] = [1, 2].map(() => waiting(other, 'ada@account.test', 'deferred'));
    const filter = { accountId: other.accountId };
    expect(await retry({ filter, after: first })).toMatchObject({ data: { changed: 1, next: null } });
    expect([dueIn(first) > 0, dueIn(second) > 0]).toEqual([true, false]);
  });

  it('probes suspended sites also when no message is deferred, but not with dryRun or an invalid filter', async () => {
    const before = daemon.tables.settings.retries();
    const filter = { destination: 'nothing-waits.test' };
    await retry({ filter, dryRun: true });
    await retry({ filter: {} });
    expect(daemon.tables.settings.retries()).toBe(before);
    expect(await retry({ filter })).toMatchObject({ data: { matched: 0, changed: 0 } });
    expect(daemon.tables.settings.retries()).toBe(before + 1);
  });

  it('requires a filter', async () => {
    expect(await retry({ filter: {} })).toMatchObject({ status: 400, error: { code: 'VALIDATION_ERROR' } });
  });
});

describe('GET /web-setup/queue/accounts', () => {
  it('counts the messages of each account, those with the most first', async () => {
    const { data } = await shop.get<{ accounts: object[]; count: number }>('/web-setup/queue/accounts');
    expect(data).toMatchObject({
      accounts: [
        { accountId: shop.accountId, messages: 32, scheduled: 1 },
        { accountId: other.accountId, messages: 2 },
      ],
      count: 2,
    });
  });

  it('counts the messages of one account', async () => {
    const path = '/web-setup/queue/accounts?accountId=';
    const { data } = await shop.get<object>(path + other.accountId);
    expect(data).toMatchObject({ accounts: [{ accountId: other.accountId, messages: 2 }], count: 1 });
    expect(await shop.get(`${path}acct_unknown`)).toMatchObject({ data: { accounts: [], count: 0 } });
  });
});

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DAY } from '../../../src/core/clock.ts';
import { openDatabase } from '../../../src/store/database/database.ts';
import { createWriter } from '../../../src/store/database/writer.ts';
import { createTables } from '../../../src/store/tables.ts';
import type { ApiClient } from '../../support/api-client.ts';
import { type InProcess, startInProcess } from '../../support/in-process-daemon.ts';

/** The reputation of an account, from counts that the test writes. */
const TODAY = Date.now() - (Date.now() % DAY);
const dateOf = (age: number) => new Date(TODAY - age * DAY).toISOString().slice(0, 10);

let daemon: InProcess;
let one: ApiClient;
let two: ApiClient;
let domainId: string;

interface Sums {
  volume: number;
  attempts: number;
  delivered: number;
  deferred: number;
  bounced: number;
  rates: Record<string, number | null>;
}
interface Reputation {
  days: number;
  total: Sums & { days: { date: string; delivered: number }[] };
  providers: ({ provider: string; days: { date: string }[] } & Sums)[];
  domains: ({ domainId: string; domain: string | null } & Sums)[];
  sourceAddresses: ({ name: string } & Sums)[];
  changes: { sentence: string; since: string }[];
  limits: unknown[];
  spamRates: object[];
  dmarc: { messages: number; passed: number; passRate: number | null };
}

beforeAll(async () => {
  daemon = await startInProcess();
  [one, two] = [await daemon.account('One'), await daemon.account('Two')];
  const created = await one.put<{ domainId: string }>('/web-setup/domains', {
    domain: 'example.com',
    useCaseId: 'tx-local',
  });
  ({ domainId } = created.data);
  const db = openDatabase(daemon.dataDir);
  const tables = createTables(db);
  const writer = createWriter(db, tables);
  await writer.run((tx) => {
    for (let age = 0; age < 25; age++)
      for (let n = 0; n < 100; n++) {
        const key = { day: TODAY - age * DAY, accountId: one.accountId, domainId, provider: 'Google' };
        tx.reputationCounts.add({ ...key, source: '' }, 'volume');
        tx.reputationCounts.add({ ...key, source: 'pool-a' }, n < 20 && age < 5 ? 'deferred' : 'delivered');
      }
    const other = { day: TODAY, accountId: one.accountId, domainId: 'domain_gone', source: 'pool-b' };
    tx.reputationCounts.add({ ...other, provider: 'other' }, 'hardBounced');
    tx.reputationCounts.add({ ...other, provider: 'other' }, 'softBounced');
    const foreign = { day: TODAY, accountId: two.accountId, domainId: 'domain_two', source: '' };
    tx.reputationCounts.add({ ...foreign, provider: 'Yahoo' }, 'delivered');
  });
  await writer.close();
  db.close();
});
afterAll(() => daemon.stop());

const reputation = async (query = '', client = one) => {
  const { status, data } = await client.get<Reputation>(`/web-setup/reputation${query}`);
  expect(status).toBe(200);
  return data;
};

describe('GET /web-setup/reputation', () => {
  it('has providers by day, domains and source addresses', async () => {
    const found = await reputation();
    expect(found).toMatchObject({
      days: 30,
      limits: [],
      spamRates: [],
      dmarc: { messages: 0, passRate: null },
    });
    expect(
      found.providers.map(({ provider, volume, delivered, deferred, bounced }) => [
        provider,
        volume,
        delivered,
        deferred,
        bounced,
      ]),
    ).toEqual([
      ['Google', 2500, 2400, 100, 0],
      ['other', 0, 0, 0, 2],
    ]);
    expect(found.providers[0]?.days).toHaveLength(25);
    expect(found.providers[0]?.days.at(-1)).toMatchObject({ date: dateOf(0), delivered: 80, deferred: 20 });
    expect(found.providers[0]?.rates).toMatchObject({ delivered: 0.96, deferred: 0.04, opened: 0 });
    expect(found.domains.map(({ domain, attempts }) => [domain, attempts])).toEqual([
      ['example.com', 2500],
      [null, 2],
    ]);
    expect(found.sourceAddresses.map(({ name, attempts }) => [name, attempts])).toEqual([
      ['pool-a', 2500],
      ['pool-b', 2],
    ]);
  });

  it('states what changed and since when, whatever the period', async () => {
    const { changes, total } = await reputation('?days=1');
    expect(total.days.map(({ date, delivered }) => [date, delivered])).toEqual([[dateOf(0), 80]]);
    expect(changes).toMatchObject([
      { provider: 'Google', rate: 'deferred', since: dateOf(4), share: 0.2, before: 0 },
    ]);
    expect(changes[0]?.sentence).toMatch(/^Google has deferred 20 % of example\.com's mail since /);
  });

  it('is narrowed to a domain and a source address', async () => {
    for (const query of [`?domain=${domainId}`, '?domain=Example.com', '?sourceAddress=pool-a'])
      expect((await reputation(query)).total).toMatchObject({ delivered: 2400, bounced: 0 });
    expect((await reputation('?sourceAddress=pool-b')).total).toMatchObject({ attempts: 2, volume: 0 });
  });

  it('is that of the account', async () => {
    expect((await reputation('', two)).providers).toMatchObject([{ provider: 'Yahoo', delivered: 1 }]);
    const { status, error } = await two.get(`/web-setup/reputation?domain=${domainId}`);
    expect([status, error.code]).toEqual([404, 'DOMAIN_NOT_FOUND']);
  });

  it.each(['?days=0', '?days=91', '?days=x', '?format=xml'])('refuses %s', async (query) => {
    expect((await one.get(`/web-setup/reputation${query}`)).status).toBe(400);
  });

  it('is a CSV with a line for each provider and day', async () => {
    const response = await one.call('GET', '/web-setup/reputation?format=csv&days=2');
    expect(response.headers.get('content-type')).toBe('text/csv; charset=utf-8');
    const [head, ...lines] = response.text.trimEnd().split('\r\n');
    expect(head).toMatch(/^day,provider,volume,delivered,/);
    expect(lines).toEqual([
      expect.stringContaining(`${dateOf(1)},Google,100,80,20,`),
      expect.stringContaining(`${dateOf(0)},Google,100,80,20,`),
      expect.stringContaining(`${dateOf(0)},other,0,0,0,1,1,`),
    ]);
  });
});

describe('POST /web-setup/reputation/spam-rates', () => {
  const PATH = '/web-setup/reputation/spam-rates';
  const rate = { provider: 'Google', domain: 'example.com', day: dateOf(1), rate: 0.002 };

  it('stores a rate, which the reputation has', async () => {
    expect(await one.post(PATH, rate)).toMatchObject({
      status: 201,
      data: { spamRate: rate, result: 'created' },
    });
    expect(await one.post(PATH, rate)).toMatchObject({ status: 200, data: { result: 'unchanged' } });
    expect((await reputation()).spamRates).toEqual([rate]);
    expect((await reputation('', two)).spamRates).toEqual([]);
  });

  it('imports a CSV', async () => {
    const { data } = await one.call('POST', `${PATH}?domain=example.com`, {
      headers: { 'Content-Type': 'text/csv' },
      rawBody: `date,spam rate\n${dateOf(2)},0.3%\n`,
    });
    expect(data).toMatchObject({ source: 'postmaster-tools', created: 1, message: '1 of 1 rows imported.' });
  });

  it('names an invalid field, and refuses other media types', async () => {
    expect((await one.post(PATH, { ...rate, rate: 1.5 })).error).toMatchObject({
      code: 'VALIDATION_ERROR',
      details: [{ field: 'rate' }],
    });
    const plain = { headers: { 'Content-Type': 'text/plain' }, rawBody: 'x' };
    expect((await one.call('POST', PATH, plain)).status).toBe(415);
    expect((await one.call('POST', PATH)).status).toBe(400);
  });
});

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openDatabase } from '../../../src/store/database/database.ts';
import { createWriter } from '../../../src/store/database/writer.ts';
import { createTables } from '../../../src/store/tables.ts';
import type { ApiClient } from '../../support/api-client.ts';
import { type InProcess, startInProcess } from '../../support/in-process-daemon.ts';

/** Statistics over time, from counts that the test writes. */
const DAY_START = Date.parse('2026-01-30T00:00:00Z');
const HOUR = 3_600_000;
const PERIOD = 'from=2026-01-30T00:00:00Z&to=2026-02-01T00:00:00Z';

let daemon: InProcess;
let one: ApiClient;
let two: ApiClient;

interface Statistics {
  interval: string;
  from: string;
  to: string;
  series: { name?: string; points: ({ at: string } & Record<string, unknown>)[] }[];
}

beforeAll(async () => {
  daemon = await startInProcess();
  [one, two] = [await daemon.account('One'), await daemon.account('Two')];
  const db = openDatabase(daemon.dataDir);
  const tables = createTables(db);
  const writer = createWriter(db, tables);
  await writer.run((tx) => {
    const count = (accountId: string, hour: number, provider: string, messages: number) => {
      const key = { hour: DAY_START + hour * HOUR, accountId, domainId: 'domain_1', provider } as const;
      tx.hourlyCounts.add({ ...key, stream: 'tx', outcome: 'accepted', outcomeClass: '' }, messages);
      tx.hourlyCounts.add({ ...key, stream: 'mk', outcome: 'delivered', outcomeClass: '' }, messages - 1);
    };
    count(one.accountId, 1, 'gmail', 10);
    count(one.accountId, 1, 'yahoo', 3);
    count(one.accountId, 30, 'gmail', 4);
    count(two.accountId, 1, 'gmail', 100);
    for (let n = 0; n < 25; n++) count(two.accountId, 2, `p${n}.example`, 2 + n);
  });
  await writer.close();
  db.close();
});
afterAll(() => daemon.stop());

const statistics = async (query: string) => {
  const { status, data } = await one.get<Statistics>(`/web-setup/statistics?${query}`);
  expect(status).toBe(200);
  return data;
};

describe('GET /web-setup/statistics', () => {
  it('returns the hours of the account in order', async () => {
    expect(await statistics(PERIOD)).toMatchObject({
      interval: 'hour',
      from: '2026-01-30T00:00:00.000Z',
      to: '2026-02-01T00:00:00.000Z',
      series: [
        {
          points: [
            { at: '2026-01-30T01:00:00.000Z', accepted: 13, delivered: 11, bounced: 0 },
            { at: '2026-01-31T06:00:00.000Z', accepted: 4, delivered: 3, bounced: 0 },
          ],
        },
      ],
    });
  });

  it('adds up days', async () => {
    const { series } = await statistics(`${PERIOD}&interval=day`);
    expect(series.map(({ points }) => points.map(({ at, accepted }) => [at, accepted]))).toEqual([
      [
        ['2026-01-30T00:00:00.000Z', 13],
        ['2026-01-31T00:00:00.000Z', 4],
      ],
    ]);
  });

  it('has a series for each provider or domain', async () => {
    const names = async (by: string) =>
      (await statistics(`${PERIOD}&by=${by}`)).series.map(({ name, points }) => [name, points.length]);
    expect(await names('provider')).toEqual([
      ['gmail', 2],
      ['yahoo', 1],
    ]);
    expect(await names('domain')).toEqual([['domain_1', 2]]);
  });

  it('adds up those beyond the largest twenty', async () => {
    const { data } = await two.get<Statistics>(`/web-setup/statistics?${PERIOD}&by=provider`);
    expect(data.series).toHaveLength(21);
    expect(data.series[0]?.name).toBe('gmail');
    // The six smallest: 2 to 7 messages.
    expect(data.series.at(-1)).toMatchObject({ name: 'other', points: [{ accepted: 27 }] });
  });

  it.each([
    'from=2026-02-01T00:00:00Z&to=2026-01-31T00:00:00Z',
    'from=2025-01-01T00:00:00Z&to=2026-01-31T00:00:00Z',
    'interval=day&from=2020-01-01T00:00:00Z&to=2026-01-31T00:00:00Z',
  ])('rejects %s', async (query) => {
    const { status, error } = await one.get(`/web-setup/statistics?${query}`);
    expect([status, error.details?.[0]?.field]).toEqual([400, 'from']);
  });
});

describe('GET /web-setup/installation/statistics', () => {
  it('has the messages of all accounts', async () => {
    const { data } = await one.get<Statistics>(
      `/web-setup/installation/statistics?${PERIOD}&by=account&interval=day`,
    );
    expect(data.series.map(({ name }) => name)).toEqual([two.accountId, one.accountId]);
  });

  it('requires the key of an operator', async () => {
    const headers = { 'X-Api-Key': one.keys.setup };
    const { error } = await one.call('GET', `/web-setup/installation/statistics?${PERIOD}`, { headers });
    expect(error.code).toBe('INSUFFICIENT_SCOPE');
  });
});

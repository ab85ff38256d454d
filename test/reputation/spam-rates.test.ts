import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { isRefusal } from '../../src/core/refusal.ts';
import { createSpamRates } from '../../src/reputation/spam-rates.ts';
import { startStore } from '../support/store.ts';

const ACCOUNT = 'acct_one';

function start(maxRates?: number) {
  const store = startStore();
  const spamRates = createSpamRates(store, maxRates === undefined ? {} : { maxRates });
  const stored = () =>
    store.tables.spamRates
      .ofPeriod(ACCOUNT, 0, Number.MAX_SAFE_INTEGER, 100)
      .map(({ provider, about, day, rate }) => [
        provider,
        about,
        new Date(day).toISOString().slice(0, 10),
        rate,
      ]);
  const importCsv = (text: string, domain?: string) =>
    spamRates.importCsv(ACCOUNT, Readable.from([Buffer.from(text)]), domain);
  return { ...store, spamRates, stored, importCsv };
}

describe('a spam rate', () => {
  it('is stored once for each provider, day and domain or address', async () => {
    const { spamRates, stored } = start();
    const rate = { domain: 'Example.com', provider: 'gmail', day: '2026-01-10', rate: 0.001 };
    expect(await spamRates.add(ACCOUNT, rate)).toMatchObject({ stored: 'created' });
    expect(await spamRates.add(ACCOUNT, rate)).toMatchObject({ stored: 'unchanged' });
    expect(await spamRates.add(ACCOUNT, { ...rate, rate: 0.002 })).toMatchObject({ stored: 'updated' });
    expect(stored()).toEqual([['Google', 'example.com', '2026-01-10', 0.002]]);
  });

  it.each([
    [{ provider: 'Example Mail' }, 'provider'],
    [{ domain: undefined }, 'domain'],
    [{ address: '192.0.2.1' }, 'domain'],
    [{ domain: 'not a domain' }, 'domain'],
    [{ domain: undefined, address: '192.0.2' }, 'address'],
    [{ day: '2026-02-30' }, 'day'],
    [{ day: '2026-02-01' }, 'day'],
    [{ day: '2020-01-01' }, 'day'],
    [{ rate: 3 }, 'rate'],
  ])('with %j names the field', async (changed, field) => {
    const { spamRates, stored } = start();
    const rate = { domain: 'example.com', provider: 'Google', day: '2026-01-10', rate: 0.001, ...changed };
    const refused = await spamRates.add(ACCOUNT, rate);
    expect(isRefusal(refused) && refused.extras.details?.[0]?.field).toBe(field);
    expect(stored()).toEqual([]);
  });
});

describe('a file of spam rates', () => {
  it.each([
    [
      'of Postmaster Tools with percentages',
      'Date,User reported spam rate\n2026-01-10,0.1%\n20260111,"0,34 %"\n',
      'example.com',
      'postmaster-tools',
      [
        ['Google', 'example.com', '2026-01-10', 0.001],
        ['Google', 'example.com', '2026-01-11', 0.0034],
      ],
    ],
    [
      'of Postmaster Tools with shares and domains',
      'domain,date,userReportedSpamRatio\nexample.com,2026-01-10,0.001\nexample.net,2026-01-10,0\n',
      undefined,
      'postmaster-tools',
      [
        ['Google', 'example.com', '2026-01-10', 0.001],
        ['Google', 'example.net', '2026-01-10', 0],
      ],
    ],
    [
      'of SNDS for programs',
      '192.0.2.25,1/9/2026 3:00 AM,1/10/2026 2:00 AM,1894,1890,1888,GREEN,< 0.1%,,,0,mail.example.com,news@example.com,\n',
      undefined,
      'snds',
      [['Microsoft', '192.0.2.25', '2026-01-09', 0.001]],
    ],
    [
      'of SNDS with a header',
      'IP Address,Activity period start,Activity period end,Filter result,Complaint rate\n192.0.2.25,1/9/2026 3:00 AM,1/10/2026 2:00 AM,GREEN,0.3%\n',
      undefined,
      'snds',
      [['Microsoft', '192.0.2.25', '2026-01-09', 0.003]],
    ],
    [
      'of any provider',
      'provider;domain;day;rate (%)\nyahoo;example.com;2026-01-10;0.2\n',
      undefined,
      'list',
      [['Yahoo', 'example.com', '2026-01-10', 0.002]],
    ],
  ])('%s is recognized', async (_, text, domain, source, rows) => {
    const { importCsv, stored } = start();
    expect(await importCsv(text, domain)).toMatchObject({ source, created: rows.length, rejected: 0 });
    expect(stored()).toEqual(rows);
    expect(await importCsv(text, domain)).toMatchObject({ unchanged: rows.length, created: 0 });
  });

  it('names the rows that it does not import', async () => {
    const { importCsv } = start();
    const text =
      'date,spam rate\n2026-01-10,n/a\nyesterday,0.1%\n2026-01-11,much\n2026-01-12,0.1%\n2019-01-01,0.1%\n';
    expect(await importCsv(text, 'example.com')).toMatchObject({
      rows: 5,
      created: 1,
      rejected: 4,
      rejectedRows: [
        { line: 2, reason: 'has no rate' },
        { line: 3, reason: 'the day is not one' },
        { line: 4, reason: 'the rate is not a number' },
        { line: 6, reason: 'day: is more than two years ago' },
      ],
    });
  });

  it('ends at the limit of the account, and may replace rates there', async () => {
    const { importCsv, stored } = start(2);
    const rows = (...rates: string[]) => `date,spam rate\n${rates.map((rate) => `${rate}\n`).join('')}`;
    await importCsv(rows('2026-01-10,0.1%', '2026-01-11,0.1%'), 'example.com');
    expect(await importCsv(rows('2026-01-10,0.2%'), 'example.com')).toMatchObject({ updated: 1 });
    const refused = await importCsv(rows('2026-01-12,0.1%'), 'example.com');
    expect(isRefusal(refused) && refused.code).toBe('LIMIT_REACHED');
    expect(stored().map(([, , day, rate]) => [day, rate])).toEqual([
      ['2026-01-10', 0.002],
      ['2026-01-11', 0.001],
    ]);
  });

  it.each([
    ['', undefined, 'body'],
    ['email,name\nann@example.com,Ann\n', undefined, 'body'],
    ['date,spam rate\n2026-01-10,0.1%\n', undefined, 'domain'],
  ])('%j is refused', async (text, domain, field) => {
    const refused = await start().importCsv(text, domain);
    expect(isRefusal(refused) && refused.extras.details?.[0]?.field).toBe(field);
  });
});

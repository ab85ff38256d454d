import { expect, it } from 'vitest';
import { MONTH_ADDRESSES, MONTH_PROVIDERS } from '../bench/warmup/providers.ts';
import { type MonthResult, simulateMonth } from '../bench/warmup-month.ts';
import { faultsOfMonth } from '../bench/warmup-report.ts';

/*
 * The month of `npm run simulate:warmup` with a thousandth of its messages: three new addresses, eight providers, of
 * which one throttles and one lists an address for some days.
 */
const SCHEDULE = [
  1, 1, 2, 3, 4, 5, 6, 8, 20, 22, 25, 30, 34, 40, 46, 54, 62, 72, 82, 95, 110, 125, 145, 170, 200, 230, 270,
  310, 360, 420,
];

it('keeps the schedule for a month and loses nothing, with a provider that throttles and one that lists an address', async () => {
  const month: MonthResult = await simulateMonth({
    recipients: 8000,
    transactionalPerDay: 24,
    schedule: SCHEDULE,
    days: 30,
  });
  expect(faultsOfMonth(month)).toEqual([]);
  const rows = month.days.flatMap(({ day, rows: all }) => all.map((row) => ({ ...row, at: day })));
  for (const provider of Object.keys(MONTH_PROVIDERS))
    expect(new Set(rows.filter((row) => row.provider === provider).map(({ entry }) => entry))).toEqual(
      new Set(Object.keys(MONTH_ADDRESSES)),
    );
  expect(rows.some(({ provider, reason }) => provider === 'Yahoo' && reason !== null)).toBe(true);
  expect(rows.some((row) => row.entry === 'out-2' && row.provider === 'Microsoft' && row.isRefused)).toBe(
    true,
  );
  expect(rows.some((row) => row.entry !== 'out-2' && row.isRefused)).toBe(false);
  expect(month.days.at(-1)?.rows.some(({ isRefused }) => isRefused)).toBe(false);
  expect(month.queued).toBe(0);
});

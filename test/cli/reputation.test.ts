import { appendFileSync } from 'node:fs';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createContext } from '../../src/cli/context.ts';
import { DAY } from '../../src/core/clock.ts';
import { insertAccount } from '../support/store.ts';
import { createShell } from './run.ts';

let shell: ReturnType<typeof createShell>;
const today = Math.floor(Date.now() / DAY) * DAY;

beforeEach(async () => {
  shell = createShell();
  const context = createContext(() => shell.file);
  const { tables, writer } = await context.open();
  insertAccount(tables, 'acct_shop', today);
  await writer.run((tx) => {
    const key = { day: today, accountId: 'acct_shop', domainId: 'domain_one', provider: 'Google' };
    tx.reputationCounts.add({ ...key, source: '' }, 'volume');
    for (const result of ['delivered', 'delivered', 'deferred', 'hardBounced'] as const)
      tx.reputationCounts.add({ ...key, source: 'main' }, result);
  });
  await context.close();
});
afterEach(() => shell.remove());

it('shows the rates of each provider, as a table, CSV or JSON', async () => {
  const { out } = await shell.run('reputation', '--account', 'acct_shop');
  expect(out).toMatch(/^Google +1 +4 +50 % +25 % +25 % +0 % +0 %/m);
  expect(out).toMatch(/^main +0 +4 /m);
  const csv = await shell.run('reputation', '--account', 'acct_shop', '--days', '1', '--csv');
  expect(csv.out.trim().split(/\r?\n/)).toEqual([
    expect.stringContaining('day,provider,volume,delivered'),
    expect.stringContaining(',Google,1,2,1,1,0,0,'),
  ]);
  expect(await shell.json('reputation', '--account', 'acct_shop', '--json')).toMatchObject({
    days: 30,
    providers: [{ provider: 'Google', attempts: 4, rates: { deferred: 0.25 } }],
  });
});

it.each([
  ['--days', '91'],
  ['--domain', 'example.net'],
])('refuses %s %s', async (...args) => {
  const { err, status } = await shell.run('reputation', '--account', 'acct_shop', ...args);
  expect([err, status]).toEqual([expect.stringContaining(args[1] === '91' ? '1 to 90' : 'example.net'), 2]);
});

it('shows the ramp of a new account, skips it and applies it again', async () => {
  const ramp = (...options: string[]) => shell.run('account', 'ramp', 'acct_shop', ...options);
  expect((await ramp()).err).toMatch(/No ramp limits the account/);
  appendFileSync(shell.file, '[reputation.ramp]\nmessages = 100\n');
  expect((await ramp()).out).toMatch(/the account │ 1 of 21 │ 4 +│ 100 /);
  expect((await ramp('--skip')).err).toMatch(/No ramp limits the account/);
  expect(await shell.json('account', 'ramp', 'acct_shop', '--apply', '--json')).toEqual([
    { domain: null, day: 1, days: 21, limit: 100, used: 4 },
  ]);
  expect((await ramp('--skip', '--apply')).status).toBe(2);
});

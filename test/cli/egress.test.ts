import { readFileSync, writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createContext } from '../../src/cli/context.ts';
import { DAY } from '../../src/core/clock.ts';
import { enqueue, insertAccount, insertDomain } from '../support/store.ts';
import { createShell } from './run.ts';

let shell: ReturnType<typeof createShell>;
const today = Math.floor(Date.now() / DAY) * DAY;
const day = (back: number) => new Date(today - back * DAY).toISOString().slice(0, 10);

beforeEach(async () => {
  shell = createShell();
  const entries = `[delivery]
egress = [
  { name = "old", address = "192.0.2.1" },
  { name = "new", address = "10.0.0.2", publicAddress = "192.0.2.2", warmup = { started = ${day(4)}, days = 30 } },
  { name = "next", address = "192.0.2.3", proxy = "socks5://192.0.2.9:1080", warmup = { started = ${day(-2)} } },
]
`;
  writeFileSync(shell.file, `${readFileSync(shell.file, 'utf8')}${entries}`);
  const context = createContext(() => shell.file);
  const { writer } = await context.open();
  await writer.run((tx) => {
    tx.egressCounts.add(
      { day: today, entry: 'new', provider: 'Google' },
      { transactional: 3, marketing: 7, delivered: 8, throttled: 1, refused: 1 },
    );
    tx.egressHealth.put({
      entry: 'new',
      provider: 'Google',
      since: today,
      probe_at: today + DAY,
      failures: 1,
      passed: 0,
      blocked: 0,
      reply: '550 blocked',
    });
  });
  await context.close();
});
afterEach(() => shell.remove());

const show = (...args: string[]) => shell.json('warmup', 'show', ...args, '--json');

it('lists source addresses with warm-up, counts of today and refusals', async () => {
  expect(await shell.json('egress', 'list', '--json')).toMatchObject([
    { entry: 'old', address: '192.0.2.1', warmup: null, today: { sent: 0 }, refusedBy: [] },
    {
      entry: 'new',
      address: '192.0.2.2',
      warmup: 'day 5 of 30',
      today: { sent: 10, delivered: 8, throttled: 1, refused: 1, complained: 0 },
      refusedBy: [{ provider: 'Google', failures: 1, reply: '550 blocked' }],
    },
    { entry: 'next', proxy: '192.0.2.9:1080', warmup: 'not begun' },
  ]);
  const { out } = await shell.run('egress', 'list');
  expect(out).toContain('Google refuses 192.0.2.2 since');
});

describe('postrider warmup', () => {
  it('shows day, limit and use by provider, and one row for all others', async () => {
    expect(await show('new')).toEqual([
      {
        entry: 'new',
        address: '192.0.2.2',
        provider: 'Google',
        day: 5,
        step: 5,
        cap: 800,
        used: 10,
        transactional: 3,
        throttled: 1,
        refused: 1,
        complained: 0,
        reason: null,
      },
      expect.objectContaining({ provider: '*', day: 5, cap: 800, used: 0 }),
    ]);
    expect(await show('next')).toMatchObject([{ day: 0, cap: 0, reason: `begins on ${day(-2)}` }]);
    expect((await shell.run('warmup', 'show')).out).toContain('Google');
  });

  it('restarts at one provider or at all', async () => {
    const { out } = await shell.run('warmup', 'reset', 'new', '--provider', 'Google');
    expect(out).toBe('new at Google: day 1, 50 messages a day');
    expect(await show('new')).toMatchObject([
      { provider: 'Google', day: 1, reason: expect.stringContaining('reset by the operator') },
      { provider: '*', day: 5 },
    ]);
    await shell.run('warmup', 'reset', 'new');
    expect(await show('new')).toMatchObject([{ day: 1 }, { day: 1 }]);
  });

  it('skips to a day, or ends, at one provider or at all', async () => {
    await shell.run('warmup', 'skip', 'new', '--to-day', '10');
    expect(await show('new')).toMatchObject([{ day: 10 }, { day: 10, cap: 6500 }]);
    await shell.run('warmup', 'skip', 'new', '--provider', 'Google', '--to-day', '3');
    expect(await show('new')).toMatchObject([{ day: 3 }, { day: 10 }]);
    expect((await shell.run('warmup', 'skip', 'new')).out).toBe('new at all providers: day 5, unlimited');
    expect(await show('new')).toMatchObject([{ cap: null }, { cap: null }]);
    await shell.run('warmup', 'reset', 'new', '--provider', 'Google');
    expect(await show('new')).toMatchObject([{ day: 1, cap: 50 }, { cap: null }]);
  });

  it.each([
    [['reset', 'old'], 1, 'There is no entry "old" with a warm-up in delivery.egress: it has new, next'],
    [['skip', 'next'], 1, 'change warmup.started'],
    [['skip', 'new', '--to-day', '0'], 2, 'number from 1 to 365'],
  ])('rejects %j', async (args, status, message) => {
    const result = await shell.run('warmup', ...args);
    expect(result.status).toBe(status);
    expect(result.err).toContain(message);
  });
});

it('states in queue show what a message waits for, and until when', async () => {
  await shell.run('warmup', 'reset', 'new');
  const text = readFileSync(shell.file, 'utf8').replace(/^.*name = "(?:old|next)".*\n/gm, '');
  writeFileSync(shell.file, text);
  const context = createContext(() => shell.file);
  const { writer, tables, clock } = await context.open();
  insertAccount(tables, 'acct_one', clock.now());
  insertDomain(tables, { account_id: 'acct_one', domain_id: 'domain_one', name: 'example.com' }, clock.now());
  await writer.run((tx) =>
    tx.egressCounts.add({ day: today, entry: 'new', provider: 'Google' }, { marketing: 40 }),
  );
  const message = enqueue(tables, clock.now(), { recipient: 'ann@gmail.com', priority: 1 });
  const other = enqueue(tables, clock.now(), { recipient: 'ann@example.net', priority: 1 });
  await context.close();
  expect(await shell.json('queue', 'show', message.message_id, '--json')).toMatchObject({
    waitsFor: "waits for tomorrow's warm-up quota of 192.0.2.2 at Google (50 of 50 used)",
    nextAttemptAt: new Date(today + DAY).toISOString(),
  });
  expect(await shell.json('queue', 'show', other.message_id, '--json')).toMatchObject({ waitsFor: null });
});

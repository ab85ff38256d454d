import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { openDatabase } from '../../src/store/database.ts';
import { createTables, type Tables } from '../../src/store/tables.ts';
import { createShell } from './run.ts';

let shell: ReturnType<typeof createShell>;
beforeEach(async () => {
  shell = createShell();
  await shell.run('account', 'create', '--name', 'Shop', '--id', 'shop');
});
afterEach(() => shell.remove());

/** What the daemon would have put there. */
function store(fill: (tables: Tables) => void): void {
  const db = openDatabase(join(dirname(shell.file), 'data'));
  fill(createTables(db));
  db.close();
}

const NOON = Date.UTC(2026, 0, 15, 12);

function spring({ campaigns, campaignCounts }: Tables): void {
  campaigns.insert({
    campaign_id: 'campaign_1',
    account_id: 'shop',
    name: 'Spring',
    description: null,
    status: 'draft',
    created_at: NOON,
    updated_at: NOON,
  });
  campaignCounts.add('campaign_1', NOON, 'sent', 3);
  campaignCounts.addClick('campaign_1', 'https://example.com/');
}

it('campaign list names them', async () => {
  expect(await shell.run('campaign', 'list', '--account', 'shop')).toMatchObject({
    status: 0,
    err: 'there are no campaigns in this account',
  });
  store(spring);
  expect(await shell.json('campaign', 'list', '--account', 'shop', '--json')).toEqual([
    {
      campaignId: 'campaign_1',
      name: 'Spring',
      description: null,
      status: 'draft',
      createdAt: '2026-01-15T12:00:00.000Z',
      updatedAt: '2026-01-15T12:00:00.000Z',
    },
  ]);
});

it('campaign show counts', async () => {
  store(spring);
  const shown = await shell.json('campaign', 'show', 'campaign_1', '--account', 'shop', '--json');
  expect(shown).toMatchObject({
    campaignId: 'campaign_1',
    totals: { sent: 3, delivered: 0 },
    series: [{ timestamp: '2026-01-15T00:00:00.000Z', sent: 3 }],
    links: [{ url: 'https://example.com/', clicks: 1 }],
  });
  const { out } = await shell.run('campaign', 'show', 'campaign_1', '--account', 'shop');
  expect(out).toMatch(/^sent +3$/m);
  expect(out).toMatch(/^ +1 {2}https:\/\/example\.com\/$/m);
});

it('fails for an unknown campaign or account', async () => {
  store(spring);
  const unknown = await shell.run('campaign', 'show', 'campaign_2', '--account', 'shop');
  expect(unknown).toMatchObject({ status: 1, err: 'postrider: there is no campaign campaign_2' });
  expect((await shell.run('campaign', 'show', 'campaign_1', '--account', 'other')).status).toBe(1);
  expect(await shell.run('campaign', 'list', '--account', 'other')).toMatchObject({
    status: 1,
    err: 'postrider: there is no account other',
  });
});

import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { openDatabase } from '../../../src/store/database/database.ts';
import { createTables, type Tables } from '../../../src/store/tables.ts';
import { insertDomain } from '../../support/store.ts';
import { createShell } from '../run.ts';

let shell: ReturnType<typeof createShell>;
beforeEach(async () => {
  shell = createShell();
  await shell.run('account', 'create', '--name', 'Shop', '--id', 'shop');
});
afterEach(() => shell.remove());

/** Changes the database as the daemon would. */
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
    prepared: null,
    status: 'draft',
    created_at: NOON,
    updated_at: NOON,
  });
  campaignCounts.add('campaign_1', NOON, 'sent', 3);
  campaignCounts.endUnit(true);
  campaignCounts.write();
  campaignCounts.addClick('campaign_1', 'https://example.com/');
}

it('campaign list prints campaigns', async () => {
  expect(await shell.run('campaign', 'list', '--account', 'shop')).toMatchObject({
    status: 0,
    err: 'There are no campaigns in this account',
  });
  store(spring);
  expect(await shell.json('campaign', 'list', '--account', 'shop', '--json')).toEqual([
    {
      campaignId: 'campaign_1',
      name: 'Spring',
      status: 'draft',
      prepared: null,
      createdAt: '2026-01-15T12:00:00.000Z',
      updatedAt: '2026-01-15T12:00:00.000Z',
    },
  ]);
});

it('campaign show prints counts', async () => {
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
  expect(unknown).toMatchObject({ status: 1, err: 'postrider: There is no campaign campaign_2' });
  expect((await shell.run('campaign', 'show', 'campaign_1', '--account', 'other')).status).toBe(1);
  expect(await shell.run('campaign', 'list', '--account', 'other')).toMatchObject({
    status: 1,
    err: 'postrider: There is no account other',
  });
});

function insertGroup({ subscriptionGroups }: Tables, id: string, name: string): void {
  subscriptionGroups.insert({
    subscription_group_id: id,
    account_id: 'shop',
    name,
    description: null,
    is_active: 1,
    tags: '[]',
    unsubscribe_template_id: null,
    report_abuse_template_id: null,
    company_address_template_id: null,
    sign_up: null,
    is_public: null,
    archive_key: null,
    created_at: NOON,
    updated_at: NOON,
  });
}

/** An account that may send marketing mail, with a group, and a file with html. */
async function mayMarket(): Promise<string> {
  await shell.run(
    'account',
    'update',
    'shop',
    '--company',
    'Shop Ltd',
    '--address',
    '1 Main St, 12345 Town, GB',
  );
  store((tables) => {
    spring(tables);
    const [group] = tables.domainGroups.list('shop');
    const row = { account_id: 'shop', domain_id: 'domain_1', name: 'shop.example', use_case: 'mk' } as const;
    insertDomain(tables, { ...row, group_id: group?.group_id ?? '' }, NOON);
    insertGroup(tables, 'sgroup_1', 'News');
  });
  const file = join(dirname(shell.file), 'spring.html');
  writeFileSync(
    file,
    '<p>Hello {{firstName}}, {{offer}}</p>{{company_address_html}}{{unsubscribe_email_html}}',
  );
  return file;
}

const SEND = ['campaign', 'send', 'campaign_1', '--account', 'shop', '--group', 'sgroup_1'];
const MAIL = ['--from', 'News <news@shop.example>', '--subject', 'Spring', '--var', 'offer=a=b'];

it('campaign send, pause, resume and cancel', async () => {
  const html = await mayMarket();
  const at = new Date(Date.now() + 3_600_000).toISOString();
  const sent = await shell.json(...SEND, ...MAIL, '--html', html, '--at', at, '--per-hour', '500', '--json');
  expect(sent).toMatchObject({
    status: 'scheduled',
    progress: { subscriptionGroupId: 'sgroup_1', perHour: 500, scheduledAt: at, queued: 0 },
  });
  const act = async (verb: string) => await shell.run('campaign', verb, 'campaign_1', '--account', 'shop');
  expect(await act('pause')).toMatchObject({ status: 0, out: 'campaign_1 is paused' });
  expect(await act('pause')).toMatchObject({
    status: 1,
    err: 'postrider: Campaign campaign_1 is paused and cannot be paused',
  });
  expect((await act('resume')).out).toBe('campaign_1 is resumed');
  expect((await act('cancel')).out).toBe('campaign_1 is cancelled');
  const { out } = await act('show');
  expect(out).toMatch(/^status +cancelled$/m);
  expect(out).toMatch(/^perHour +500$/m);
  expect(out).toMatch(/^notEligible +0$/m);
  expect(await shell.run(...SEND, ...MAIL, '--html', html)).toMatchObject({
    status: 1,
    err: 'postrider: The campaign is cancelled and can be sent only once: create a new one to send again',
  });
});

it('sends a campaign to a segment of several groups, without those who received another', async () => {
  const html = await mayMarket();
  store((tables) => insertGroup(tables, 'sgroup_2', 'Offers'));
  const created = async (...args: string[]) =>
    (await shell.json(...args, '--account', 'shop', '--json')) as { segmentId: string; campaignId: string };
  const filter = join(dirname(shell.file), 'filter.json');
  writeFileSync(filter, JSON.stringify({ field: 'firstName', op: 'exists' }));
  const wanted = await created('segment', 'create', filter, '--name', 'Named');
  const other = await created('segment', 'create', filter, '--name', 'Other');
  const before = await created('campaign', 'create', '--name', 'Before');
  const audience = [
    '--group',
    'sgroup_2',
    '--segment',
    wanted.segmentId,
    '--exclude-segment',
    other.segmentId,
  ];
  const excluded = ['--exclude-campaign', before.campaignId];
  const sent = await shell.json(...SEND, ...audience, ...excluded, ...MAIL, '--html', html, '--json');
  expect(sent).toMatchObject({
    progress: {
      subscriptionGroupIds: ['sgroup_1', 'sgroup_2'],
      segmentId: wanted.segmentId,
      excludeSegmentIds: [other.segmentId],
      excludeCampaignIds: [before.campaignId],
    },
  });
});

it('tests subjects, shows their figures and chooses a winner', async () => {
  const html = await mayMarket();
  const mail = [...MAIL, '--html', html, '--track-opens', '--variant', 'Summer'];
  const test = ['--test-share', '20', '--winner', 'opens', '--wait-hours', '4'];
  const none = await shell.run(...SEND, ...mail);
  expect([none.status, none.err]).toEqual([1, expect.stringContaining('test: is required')]);
  const sent = await shell.json(...SEND, ...mail, ...test, '--json');
  expect(sent).toMatchObject({
    progress: {
      test: { share: 20, winner: 'opens', variants: [{ subject: 'Spring' }, { subject: 'Summer' }] },
    },
  });
  store((tables) => {
    const { seq = 0 } = tables.campaigns.get('shop', 'campaign_1') ?? {};
    tables.campaignVariants.addQueued(3, seq, 2);
  });
  const winner = (variant: string) =>
    shell.run('campaign', 'winner', 'campaign_1', '--account', 'shop', '--variant', variant);
  expect((await winner('C')).err).toContain('must be one of A, B');
  expect((await winner('B')).out).toBe('campaign_1 continues with variant B');
  const { out } = await shell.run('campaign', 'show', 'campaign_1', '--account', 'shop');
  expect(out).toMatch(/^chosen +B$/m);
  expect(out).toMatch(/^B +0 +0 +0 +Summer$/m);
});

it('names a file that does not exist, and its option', async () => {
  await mayMarket();
  await expect(shell.run(...SEND, ...MAIL, '--html', '/nowhere.html')).rejects.toThrow(
    '--html: /nowhere.html does not exist',
  );
  const create = ['template', 'create', '--account', 'shop', '--name', 'x', '--text', '/nowhere.txt'];
  await expect(shell.run(...create)).rejects.toThrow('--text: /nowhere.txt does not exist');
});

it.each<[why: string, args: string[], status: number, err: RegExp]>([
  ['neither html nor template', [], 1, /html: is required/],
  ['a variable without a value', ['--var', 'offer'], 2, /Must be NAME=VALUE/],
  ['a share above 100 %', ['--test-share', '101'], 2, /Must be at most 100/],
  ['an unknown measure', ['--winner', 'sales'], 2, /Must be one of opens, clicks, none/],
  ['a fraction of a message per hour', ['--per-hour', '0.5'], 2, /Must be a whole number/],
])('campaign send fails for %s', async (_, args, status, err) => {
  await mayMarket();
  const answer = await shell.run(...SEND, ...MAIL, ...args);
  expect(answer.status).toBe(status);
  expect(answer.err).toMatch(err);
});

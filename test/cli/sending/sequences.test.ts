import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { openDatabase } from '../../../src/store/database/database.ts';
import { createTables, type Tables } from '../../../src/store/tables.ts';
import { insertDomain } from '../../support/store.ts';
import { createShell } from '../run.ts';

let shell: ReturnType<typeof createShell>;
beforeEach(async () => {
  shell = createShell();
  const address = ['--company', 'Shop Ltd', '--address', '1 Main St, 12345 Town, GB'];
  await shell.run('account', 'create', '--name', 'Shop', '--id', 'shop', ...address);
});
afterEach(() => shell.remove());

const NOON = Date.UTC(2026, 0, 15, 12);
const SEND = {
  from: 'News <news@shop.example>',
  subject: 'Thanks',
  html: '<p>Hello</p>{{company_address_html}}{{unsubscribe_email_html}}',
};

/** Changes the database as the daemon would. */
function store(fill: (tables: Tables) => void): void {
  const db = openDatabase(join(dirname(shell.file), 'data'));
  fill(createTables(db));
  db.close();
}

/** A draft whose domain is verified. */
function thanks(tables: Tables): void {
  const { sequences } = tables;
  const [group] = tables.domainGroups.list('shop');
  const domain = { account_id: 'shop', domain_id: 'domain_1', name: 'shop.example', use_case: 'mk' } as const;
  insertDomain(tables, { ...domain, group_id: group?.group_id ?? '' }, NOON);
  const seq = sequences.insert({
    sequence_id: 'seq_1',
    account_id: 'shop',
    name: 'Thanks',
    status: 'draft',
    paused_reason: null,
    version: 1,
    trigger_kind: 'event',
    trigger_key: 'bought',
    offset_days: 0,
    activated_at: null,
    scan_after: null,
    missed: 0,
    deleted_at: null,
    created_at: NOON,
    updated_at: NOON,
  });
  const definition = { trigger: { event: 'bought' }, steps: [{ send: SEND }, { wait: '2d' }, { end: true }] };
  sequences.putVersion(seq, 1, JSON.stringify(definition), NOON);
}

const run = (...args: string[]) => shell.run('sequences', ...args, '--account', 'shop');

it('lists, shows, activates and pauses sequences', async () => {
  expect(await run('list')).toMatchObject({ status: 0, err: 'There are no sequences in this account' });
  store(thanks);
  expect(await shell.json('sequences', 'list', '--account', 'shop', '--json')).toMatchObject([
    { sequenceId: 'seq_1', status: 'draft', people: { inProgress: 0 } },
  ]);
  expect(await run('activate', 'seq_1')).toMatchObject({ status: 0, out: 'seq_1 is active' });
  const { out } = await run('show', 'seq_1');
  expect(out).toMatch(/^status +active$/m);
  expect(out).toMatch(/^trigger +{"event":"bought"}$/m);
  expect(out).toMatch(/^step +people +sent +delivered +opened +clicked$/m);
  expect(out).toMatch(/^0 send Thanks +0 +0 +0 +0 +0$/m);
  expect(out).toMatch(/^1 wait 2d +0/m);
  expect(await run('pause', 'seq_1')).toMatchObject({ status: 0, out: 'seq_1 is paused' });
  expect(await shell.json('sequences', 'show', 'seq_1', '--account', 'shop', '--json')).toMatchObject({
    status: 'paused',
    stepCounts: [{ step: 0 }, { step: 1, people: 0 }, { step: 2 }],
  });
});

it('fails for an unknown sequence, and for one whose messages cannot be sent', async () => {
  store(thanks);
  expect(await run('show', 'seq_2')).toMatchObject({
    status: 1,
    err: 'postrider: There is no sequence seq_2',
  });
  store((tables) => tables.sequences.putVersion(1, 1, '{"trigger":{"event":"bought"},"steps":[]}', NOON));
  expect(await run('activate', 'seq_1')).toMatchObject({
    status: 1,
    err: 'postrider: steps: must send at least one message',
  });
  expect(await run('pause', 'seq_1')).toMatchObject({
    status: 1,
    err: expect.stringContaining('is a draft'),
  });
});

import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { HOUR } from '../../../src/core/clock.ts';
import type { CampaignStatus } from '../../../src/store/campaigns/campaigns.ts';
import { openDatabase } from '../../../src/store/database/database.ts';
import type { MessageRow } from '../../../src/store/messages/messages.ts';
import { HELD } from '../../../src/store/messages/queue.ts';
import { createTables, type Tables } from '../../../src/store/tables.ts';
import { enqueue, insertAccount, insertDomain } from '../../support/store.ts';
import { createShell } from '../run.ts';

let shell: ReturnType<typeof createShell>;
beforeEach(() => {
  shell = createShell();
  store((tables) => insertAccount(tables, 'acct_one', 0));
});
afterEach(() => shell.remove());

/** Changes the database as the daemon would. */
function store<T>(work: (tables: Tables) => T): T {
  const db = openDatabase(join(dirname(shell.file), 'data'));
  try {
    return db.transaction(() => work(createTables(db)))();
  } finally {
    db.close();
  }
}

function deferred(fields: Partial<MessageRow> = {}): MessageRow {
  return store((tables) => {
    const message = enqueue(tables, Date.now(), { ...fields, dueAt: Date.now() + HOUR });
    tables.messages.setState(message.seq, 'deferred', Date.now(), null, null, 1);
    return message;
  });
}

/** Held with its campaign, as the daemon leaves it. */
function held(): MessageRow {
  const message = deferred({ campaign_id: 'campaign_one' });
  store((tables) => tables.queue.defer(message.seq, HELD));
  return message;
}

function insertCampaign(status: CampaignStatus): number {
  return store((tables) =>
    tables.campaigns.insert({
      campaign_id: 'campaign_one',
      account_id: 'acct_one',
      name: 'News',
      description: null,
      prepared: null,
      status,
      created_at: 0,
      updated_at: 0,
    }),
  );
}

describe('queue list', () => {
  it('shows paused and scheduled messages', async () => {
    const { message_id: paused } = held();
    const { message_id: scheduled } = store((tables) =>
      enqueue(tables, Date.now(), { dueAt: Date.now() + HOUR }),
    );
    const { message_id: waiting } = deferred();
    const rows: { messageId: string; state: string; nextAttemptAt: string | null }[] = await shell.json(
      'queue',
      'list',
      '--account',
      'acct_one',
      '--json',
    );
    expect(Object.fromEntries(rows.map(({ messageId, state }) => [messageId, state]))).toEqual({
      [paused]: 'paused',
      [scheduled]: 'scheduled',
      [waiting]: 'deferred',
    });
    expect(rows.find(({ messageId }) => messageId === paused)?.nextAttemptAt).toBeNull();
    expect(await shell.json('queue', 'list', '--json')).toMatchObject([
      { destination: 'example.net', messages: 3, deferred: 1, scheduled: 1, paused: 1 },
    ]);
    expect((await shell.run('queue', 'list')).out).not.toContain('9999');
    expect((await shell.run('queue', 'list', '--account', 'acct_one')).out).toMatch(/paused|scheduled/);
    expect((await shell.run('queue', 'list')).out).toMatch(/ scheduled +│? *held /);
    expect(await shell.json('queue', 'show', paused, '--json')).toMatchObject({ state: 'paused' });
  });

  it('shows messages of a paused campaign as paused before they are due', async () => {
    const seq = insertCampaign('paused');
    const message = store((tables) => {
      const row = enqueue(tables, Date.now(), { campaign_id: 'campaign_one' });
      const queued = tables.queue.get(row.seq);
      if (queued === null) throw new Error('not queued');
      tables.queue.remove(row.seq);
      tables.queue.insert({ ...queued, campaign_seq: seq });
      return row;
    });
    expect(await shell.json('queue', 'show', message.message_id, '--json')).toMatchObject({
      state: 'paused',
      nextAttemptAt: null,
    });
  });

  it.each([
    ['account', 'acct_none', 'There is no account acct_none'],
    ['campaign', 'campaign_none', 'There is no campaign campaign_none'],
    ['domain', 'domain_none', 'There is no domain domain_none'],
  ])('rejects an unknown %s', async (option, value, message) => {
    expect(await shell.run('queue', 'list', `--${option}`, value)).toEqual({
      status: 1,
      out: '',
      err: `postrider: ${message}`,
    });
  });
});

it('queue list names the sending domain without queued messages', async () => {
  store((tables) =>
    insertDomain(tables, { account_id: 'acct_one', domain_id: 'domain_one', name: 'shop.example' }, 0),
  );
  expect(await shell.run('queue', 'list', '--domain', 'domain_one')).toMatchObject({
    status: 0,
    err: 'No queued message from domain domain_one',
  });
});

describe('queue retry and cancel by filter', () => {
  it('select the messages from a sending domain', async () => {
    const { domain_id: id } = deferred();
    deferred({ domain_id: 'domain_other' });
    store((tables) =>
      insertDomain(tables, { account_id: 'acct_one', domain_id: id, name: 'shop.example' }, 0),
    );
    for (const verb of ['retry', 'cancel'])
      expect(await shell.json('queue', verb, '--domain', id, '--yes', '--json')).toMatchObject({
        matched: 1,
        changed: 1,
      });
  });

  it('ask for confirmation, and change nothing without terminal and --yes', async () => {
    const { seq } = deferred();
    expect(await shell.run('queue', 'retry', '--destination', 'example.net')).toMatchObject({
      status: 1,
      err: 'postrider: Retry 1 deferred message to example.net? Confirm with --yes.',
    });
    expect(store((tables) => tables.queue.get(seq)?.ready)).toBe(0);
  });

  it('retry deferred messages, and report held ones', async () => {
    const messages = [deferred(), deferred(), deferred({ recipient: 'ada@example.org' })];
    const paused = held();
    const outcome = await shell.run('queue', 'retry', '--destination', 'Example.NET', '--yes');
    expect(outcome).toEqual({
      status: 3,
      out: '2 messages due now',
      err: 'postrider: 1 message still held: resume the campaign, enable the account or verify the domain to send it',
    });
    expect(store((tables) => messages.map(({ seq }) => tables.queue.get(seq)?.ready))).toEqual([1, 1, 0]);
    expect(store((tables) => tables.queue.get(paused.seq)?.due_at)).toBe(HELD);
  });

  it('exit 1 if all matching messages are held', async () => {
    insertCampaign('paused');
    held();
    expect(await shell.run('queue', 'retry', '--campaign', 'campaign_one', '--yes')).toMatchObject({
      status: 1,
      out: '',
      err: expect.stringContaining('1 message still held'),
    });
  });

  it('cancel in batches, for one account or campaign', async () => {
    store((tables) => insertAccount(tables, 'acct_two', 0));
    insertCampaign('sending');
    const many = Array.from({ length: 450 }, () => ({ account_id: 'acct_one' }));
    const one = store((tables) => many.map((fields) => enqueue(tables, Date.now(), fields)));
    const two = store((tables) => enqueue(tables, Date.now(), { account_id: 'acct_two' }));
    const campaign = store((tables) =>
      enqueue(tables, Date.now(), { account_id: 'acct_two', campaign_id: 'campaign_one' }),
    );
    expect(await shell.json('queue', 'cancel', '--account', 'acct_one', '--yes', '--json')).toEqual({
      matched: 450,
      changed: 450,
      skipped: 0,
      held: 0,
    });
    const statusOf = ({ seq }: MessageRow) => store((tables) => tables.messages.bySeq(seq)?.status);
    expect(new Set(one.slice(0, 3).map(statusOf))).toEqual(new Set(['cancelled']));
    expect(await shell.run('queue', 'cancel', '--campaign', 'campaign_one', '--yes')).toMatchObject({
      status: 0,
      out: '1 message cancelled',
    });
    expect([statusOf(two), statusOf(campaign)]).toEqual(['queued', 'cancelled']);
  });

  it.each([
    ['neither ids nor a filter', ['retry'], 2, 'Specify message ids, or a filter'],
    ['both', ['cancel', 'msg_one', '--account', 'acct_one'], 2, 'not both'],
    ['an unknown account', ['cancel', '--account', 'acct_none', '--yes'], 1, 'There is no account acct_none'],
    ['an invalid domain name', ['retry', '--destination', 'a b', '--yes'], 2, 'a b is not a domain name'],
    [
      'that no message matches',
      ['retry', '--destination', 'example.net', '--yes'],
      0,
      'No deferred message to',
    ],
  ])('report %s', async (_, args, status, message) => {
    const outcome = await shell.run('queue', ...args);
    expect(outcome.status).toBe(status);
    expect(outcome.err).toContain(message);
  });
});

describe('queue retry', () => {
  it('reports a held message, and exits 1', async () => {
    const { message_id: id } = held();
    expect(await shell.run('queue', 'retry', id)).toMatchObject({
      status: 1,
      out: '',
      err: `postrider: ${id}: The message is held because its campaign is paused: resume the campaign to send it`,
    });
  });

  it('makes deferred messages due now', async () => {
    const messages = [deferred(), deferred()];
    const ids = messages.map(({ message_id }) => message_id);
    expect(await shell.run('queue', 'retry', ...ids)).toMatchObject({
      status: 0,
      out: ids
        .map(
          (id) =>
            `${id} is due now; the running daemon tries it within a second, or as soon as its destination can be reached`,
        )
        .join('\n'),
    });
    for (const { seq } of messages) expect(store((tables) => tables.queue.get(seq)?.ready)).toBe(1);
  });
});

describe('queue cancel', () => {
  it('cancels queued messages, and reports why others are not', async () => {
    const { message_id: id } = deferred();
    const first = await shell.run('queue', 'cancel', id, 'msg_none', '--json');
    expect(JSON.parse(first.out)).toMatchObject([{ messageId: id, status: 'cancelled' }]);
    expect(first).toMatchObject({ status: 3, err: 'postrider: msg_none: There is no message msg_none' });
    expect(await shell.run('queue', 'cancel', id)).toMatchObject({
      status: 1,
      out: '',
      err: `postrider: ${id}: The message is cancelled and no longer queued`,
    });
    const { rows: events } = store((tables) =>
      tables.events.feed({ accountId: 'acct_one', afterSeq: 0, limit: 10 }),
    );
    expect(events.map(({ kind, data }) => `${kind} ${data}`)).toEqual([
      'email_failed {"reason":"cancelled"}',
    ]);
  });
});

describe('queue retry of an account that is disabled', () => {
  it('states that its messages are held, and why', async () => {
    const [first] = [deferred(), deferred()];
    store((tables) => {
      const account = tables.accounts.get('acct_one');
      if (account === null) throw new Error('there is no account');
      tables.accounts.update({ ...account, status: 'disabled' });
      insertDomain(tables, { account_id: 'acct_one', domain_id: 'domain_one', name: 'shop.example' }, 0);
    });
    const { status, err } = await shell.run('queue', 'retry', '--account', 'acct_one', '--yes');
    expect(status).toBe(1);
    expect(err).toContain('2 messages not retried: The message is held because its account is disabled');
    expect(err).not.toContain('changed in the meantime');
    expect((await shell.run('queue', 'retry', first.message_id)).err).toContain('its account is disabled');
  });
});

describe('queue pause, explain and purge without a daemon', () => {
  it('pauses without a reason', async () => {
    expect(await shell.json('queue', 'pause', '--destination', 'example.net', '--json')).toMatchObject({
      scope: 'destination',
      target: 'example.net',
      reason: 'no reason given',
    });
  });

  it('work on the database, and state what only the daemon knows', async () => {
    const { message_id: id } = deferred();
    const pause = [
      'queue',
      'pause',
      '--destination',
      'example.net',
      '--reason',
      'maintenance',
      '--until',
      '2h',
    ];
    expect((await shell.run(...pause)).out).toMatch(/^Paused: destination example\.net until /);
    const text = (await shell.run('queue', 'explain', id)).out;
    expect(text).toContain('Mail to example.net is paused by the operator until');
    expect(text).toContain('"postrider queue resume --destination example.net"');
    expect(text).toContain('Not known:');
    expect(text).toContain('it is not running');
    expect((await shell.run('queue', 'explain', 'example.net')).out).toContain(
      '1 × Mail to example.net is paused',
    );
    expect(await shell.run('queue', 'explain', '--site', 'example.net')).toMatchObject({ status: 1 });
    expect(await shell.run('queue', 'explain', 'msg_0_none')).toMatchObject({ status: 1 });
    expect((await shell.run('queue', 'list')).out).toContain('paused');
    expect((await shell.run('queue', 'resume', '--destination', 'example.net')).status).toBe(0);
    expect((await shell.run('queue', 'explain', id)).out).toContain('The last attempt was deferred');
    const purge = ['queue', 'purge', '--destination', 'example.net', '--reason', 'test'];
    expect((await shell.run(...purge, '--dry-run')).out).toBe('1 waiting message would be purged');
    expect((await shell.run(...purge, '--yes')).out).toBe('1 message purged');
    expect((await shell.run('queue', 'explain', id)).out).toMatch(/^State: cancelled at 20.*Z$/m);
  });
});

describe('queue explain', () => {
  it('prints the state and the last attempts of a message that is final, and nothing of the queue', async () => {
    const { message_id: id, seq } = deferred();
    store((tables) => {
      const report = {
        action: 'bounced',
        classification: 'invalid-recipient',
        reply: { code: 550, enhanced: '5.1.1', text: 'No such user' },
      };
      tables.messages.insertAttempt({
        message_seq: seq,
        attempt: 1,
        at: Date.UTC(2026, 0, 31),
        lane: 'primary',
        report,
      });
      tables.messages.setState(seq, 'bounced', Date.now(), null, Date.UTC(2026, 0, 31));
      tables.queue.remove(seq);
    });
    const { out } = await shell.run('queue', 'explain', id);
    expect(out).toContain('State: bounced at 2026-01-31T00:00:00.000Z\n\nLast attempts:\n');
    expect(out).toContain('550 5.1.1 No such user');
    expect(out).not.toMatch(/not delivered yet|Next attempt|Expires|Ahead of it/);
  });

  it('states that mail to a destination without queued messages is paused or rejected', async () => {
    const put = (...args: string[]) => shell.run('queue', ...args, '--destination', 'example.net');
    await put('pause', '--reason', 'maintenance');
    expect((await shell.run('queue', 'explain', 'example.net')).out).toContain(
      '\nMail to example.net is paused: maintenance',
    );
    await put('bounce', '--reason', 'domain closed', '--yes');
    expect((await shell.run('queue', 'explain', 'example.net')).out).toContain(
      '\nMail to example.net is rejected: domain closed',
    );
    await put('resume');
    expect(await put('resume')).toMatchObject({
      status: 1,
      err: 'postrider: Mail to example.net is neither paused nor rejected: see "postrider queue pauses"',
    });
  });
});

describe('queue pauses', () => {
  it('lists what is paused on whole lines without a terminal, with times in UTC', async () => {
    expect((await shell.run('queue', 'pauses')).err).toBe('Nothing is paused or rejected');
    const reason = 'maintenance of every mail host of the receiver until they say that it is over';
    await shell.run('queue', 'pause', '--destination', 'mail.department.example.net', '--reason', reason);
    const { out } = await shell.run('queue', 'pauses');
    for (const text of ['destination', 'mail.department.example.net', reason]) expect(out).toContain(text);
    expect(out).toMatch(/20\d\d-\d\d-\d\d \d\d:\d\d UTC/);
    expect(out).not.toMatch(/…|command line/);
    expect(await shell.json('queue', 'pauses', '--json')).toMatchObject([{ createdBy: 'command line' }]);
  });
});

import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openDatabase } from '../../../src/store/database/database.ts';
import { createTables, type Tables } from '../../../src/store/tables.ts';
import { enqueue, insertAccount } from '../../support/store.ts';
import { createShell } from '../run.ts';

let shell: ReturnType<typeof createShell>;
beforeEach(() => {
  shell = createShell();
  store((tables) => {
    for (const account of ['acct_one', 'acct_two']) insertAccount(tables, account, 0);
    enqueue(tables, Date.UTC(2026, 0, 1), { recipient: 'ada@example.net', subject: 'Your Invoice 1' });
    const bounced = enqueue(tables, Date.UTC(2026, 1, 1), { recipient: 'bob@example.net', subject: 'Hello' });
    tables.messages.setState(bounced.seq, 'bounced', Date.now(), null, Date.now());
  });
});
afterEach(() => shell.remove());

function store<T>(work: (tables: Tables) => T): T {
  const db = openDatabase(join(dirname(shell.file), 'data'));
  try {
    return work(createTables(db));
  } finally {
    db.close();
  }
}

describe('message list', () => {
  it('finds a recipient by the Unicode form of the domain', async () => {
    const recipient = 'eva@xn--bcher-kva.example';
    store((tables) => enqueue(tables, Date.UTC(2026, 0, 1), { recipient }));
    const rows = await shell.json('message', 'list', '--recipient', 'Eva@bücher.example', '--json');
    expect(rows).toMatchObject([{ recipient }]);
  });

  it.each<[string[], string[]]>([
    [[], ['bob@example.net', 'ada@example.net']],
    [['--recipient', 'Ada@example.net'], ['ada@example.net']],
    [['--subject', 'invoice'], ['ada@example.net']],
    [['--status', 'bounced'], ['bob@example.net']],
    [['--from', '2026-01-15'], ['bob@example.net']],
    [['--to', '2026-01-15T00:00:00Z'], ['ada@example.net']],
    [
      ['--sender', '@'],
      ['bob@example.net', 'ada@example.net'],
    ],
    [['--sender', 'nobody@'], []],
    [['--account', 'acct_two'], []],
    [['--limit', '1'], ['bob@example.net']],
  ])('%j', async (args, recipients) => {
    const rows: { recipient: string }[] = await shell.json('message', 'list', ...args, '--json');
    expect(rows.map(({ recipient }) => recipient)).toEqual(recipients);
  });

  it.each<[string[], number, string]>([
    [['--account', 'acct_none'], 1, 'There is no account acct_none'],
    [['--domain', 'none.example'], 1, 'There is no domain none.example'],
    [['--from', 'yesterday'], 2, '--from must be a date'],
    [['--status', 'lost'], 2, 'Allowed choices are scheduled, queued'],
  ])('rejects %j', async (args, status, message) => {
    const outcome = await shell.run('message', 'list', ...args);
    expect(outcome).toMatchObject({ status, err: expect.stringContaining(message) });
  });
});

describe('message show', () => {
  it('escapes control characters, which a terminal would interpret', async () => {
    const subject = 'Hello\u001b[2J\u009b31m';
    const { message_id: id } = store((tables) => enqueue(tables, Date.now(), { subject }));
    expect((await shell.run('message', 'show', id)).out).toMatch(/^subject +Hello\\x1b\[2J\\x9b31m$/m);
    expect(await shell.json('message', 'show', id, '--json')).toMatchObject({ subject });
  });

  it('prints events, attempts and sessions as text, not as JSON', async () => {
    const reply = { code: 550, enhanced: '5.1.1', text: 'User "bob" unknown' };
    const session = {
      host: 'mx.example.net',
      address: '192.0.2.1',
      port: 25,
      localAddress: '192.0.2.9',
      stage: 'rcpt',
      error: null,
      startedAt: 1_000,
      endedAt: 1_250,
    };
    const tls = {
      protocol: 'TLSv1.3',
      cipher: 'TLS_AES_256_GCM_SHA384',
      verified: true,
      policy: 'verified',
      requiredBy: 'dane',
      verification: 'dane',
    };
    const id = store((tables) => {
      const { seq, message_id } = enqueue(tables, 1_000, { recipient: 'bob@example.net' });
      tables.messages.insertAttempt({
        message_seq: seq,
        attempt: 1,
        at: 2_000,
        lane: 'primary',
        report: {
          conclusion: 'replied',
          action: 'bounce',
          classification: 'invalid-recipient',
          reply,
          sessions: [
            { ...session, tls, reply },
            { ...session, tls: null, reply: null, error: 'connection refused' },
          ],
        },
      });
      tables.messages.setAttempts(seq, 1);
      return message_id;
    });
    const { out } = await shell.run('message', 'show', id);
    expect(out.split('\n').slice(-5)).toEqual([
      '1970-01-01T00:00:02.000Z  attempt 1 (primary lane, invalid-recipient): 550 5.1.1 User "bob" unknown',
      '    mx.example.net (192.0.2.1, port 25) from 192.0.2.9, 250 ms, ended in phase rcpt: 550 5.1.1 User "bob" unknown',
      '      TLSv1.3 TLS_AES_256_GCM_SHA384, verified (dane); policy verified, required by dane',
      '    mx.example.net (192.0.2.1, port 25) from 192.0.2.9, 250 ms, ended in phase rcpt: connection refused',
      '      without TLS',
    ]);
    expect(out).not.toMatch(/[{}]/);
    expect(await shell.json('message', 'show', id, '--json')).toMatchObject({ timeline: [{ reply }] });
  });

  it('escapes them in errors', async () => {
    const { err } = await shell.run('message', 'show', 'a\u001b[2J');
    expect(err).toMatch(/^postrider: .*a\\x1b\[2J/);
  });
});

describe('group, template and campaign', () => {
  it('are created and listed', async () => {
    const on = ['--account', 'acct_one', '--json'];
    const group = await shell.json('group', 'create', '--name', 'News', ...on);
    expect(await shell.json('group', 'list', ...on)).toMatchObject([{ ...group, name: 'News' }]);
    const campaign = await shell.json('campaign', 'create', '--name', 'Spring', ...on);
    expect(await shell.json('campaign', 'list', ...on)).toMatchObject([{ campaignId: campaign.campaignId }]);
    const args = ['--name', 'Order', '--html', shell.file, '--subject', 'Order {{n}}', ...on];
    const template = await shell.json('template', 'create', ...args);
    expect(template).toMatchObject({
      name: 'Order',
      subject: 'Order {{n}}',
      html: expect.stringContaining('[data]'),
    });
    await shell.json('template', 'update', template.templateId, '--name', 'Order 2', ...on);
    expect(await shell.json('template', 'list', ...on)).toMatchObject([
      { name: 'Order 2', subject: 'Order {{n}}' },
    ]);
    await shell.json('template', 'delete', template.templateId, ...on);
    expect(await shell.json('template', 'list', ...on)).toEqual([]);
  });

  it('are partials, too', async () => {
    const on = ['--account', 'acct_one', '--json'];
    const created = await shell.json('partial', 'create', '--name', 'head', '--html', shell.file, ...on);
    expect(created).toMatchObject({ name: 'head', html: expect.stringContaining('[data]') });
    await shell.json('partial', 'update', created.partialId, '--name', 'top', ...on);
    expect(await shell.json('partial', 'list', ...on)).toMatchObject([{ name: 'top', bytes: created.bytes }]);
    expect(await shell.json('partial', 'show', created.partialId, ...on)).toMatchObject({ name: 'top' });
    await shell.json('partial', 'delete', created.partialId, ...on);
    expect(await shell.json('partial', 'list', ...on)).toEqual([]);
  });

  it('note that a list is not complete', async () => {
    const on = ['--account', 'acct_one'];
    for (const name of ['One', 'Two']) {
      await shell.json('group', 'create', '--name', name, ...on, '--json');
      await shell.json('campaign', 'create', '--name', name, ...on, '--json');
      await shell.json('template', 'create', '--name', name, '--html', shell.file, ...on, '--json');
    }
    for (const kind of ['group', 'campaign', 'template']) {
      const { err } = await shell.run(kind, 'list', '--limit', '1', ...on);
      expect(err).toBe('postrider: There are more than 1: --limit shows up to 1000');
      expect((await shell.run(kind, 'list', '--limit', '2', ...on)).err).toBe('');
    }
  });

  it('warns why a send with the template would be refused', async () => {
    const { err } = await shell.run(
      'template',
      'create',
      '--account',
      'acct_one',
      '--name',
      'x',
      '--html',
      shell.file,
    );
    expect(err).toMatch(/^postrider: warning: .*company_address_html/m);
  });
});

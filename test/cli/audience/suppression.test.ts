import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createShell } from '../run.ts';

let shell: ReturnType<typeof createShell>;
beforeEach(async () => {
  shell = createShell();
  for (const id of ['shop', 'other']) await shell.run('account', 'create', '--name', 'Shop', '--id', id);
});
afterEach(() => shell.remove());

const suppression = (verb: string, ...args: string[]) =>
  shell.run('suppression', verb, ...args, '--account', 'shop');

const importing = (name: string, text: string | Buffer, ...args: string[]) => {
  const file = join(dirname(shell.file), name);
  writeFileSync(file, text);
  return shell.run('suppressions', 'import', file, '--account', 'shop', ...args);
};

describe('suppressions import', () => {
  it('reads the export of a service with reasons and times, and reports rejected rows', async () => {
    const { status, out } = await importing(
      'bounces.csv',
      Buffer.from(
        '\ufeffstatus,reason,email,created\r\n5.1.1,"550 5.1.1 no such user",ada@example.net,1672653600\r\n4.2.2,full,bob@example.net,1672653600\r\n',
        'utf16le',
      ),
    );
    expect([status, out.split('\n')]).toEqual([
      3,
      [
        expect.stringMatching(/bounces\.csv \(sendgrid\): 2 rows, 1 created, 0 unchanged, 1 rejected$/),
        expect.stringMatching(/^ {2}line 3: /),
      ],
    ]);
    expect(await shell.json('suppression', 'list', '--account', 'shop', '--json')).toMatchObject([
      {
        email: 'ada@example.net',
        reason: 'hard_bounce',
        stream: 'all',
        createdAt: '2023-01-02T10:00:00.000Z',
      },
    ]);
  });

  it('reads a plain list, again without changes, and prints JSON', async () => {
    const list = 'ada@example.net\nbob@example.net\n';
    expect((await importing('list.txt', list)).status).toBe(0);
    const { status, out } = await importing('list.txt', list, '--json');
    expect([status, JSON.parse(out)]).toEqual([
      0,
      { format: 'plain', rows: 2, created: 0, unchanged: 2, rejected: 0, rejectedRows: [] },
    ]);
  });

  it('takes the format that is named', async () => {
    const text = 'address,created_at\nada@example.net,2023-01-02 10:00:00 UTC\n';
    await importing('left.csv', text, '--format', 'plain');
    expect(await shell.json('suppression', 'list', '--account', 'shop', '--json')).toMatchObject([
      { email: 'ada@example.net', reason: 'manual' },
    ]);
    const unknown = await importing('left.csv', text, '--format', 'mailchimp');
    expect([unknown.status, unknown.err]).toEqual([2, expect.stringContaining('Allowed choices are auto')]);
  });

  it('refuses an empty file, a missing one and an unknown account', async () => {
    expect(await importing('empty.csv', '')).toMatchObject({
      status: 2,
      err: expect.stringContaining('is empty'),
    });
    await expect(shell.run('suppressions', 'import', '/nowhere.csv', '--account', 'shop')).rejects.toThrow(
      '/nowhere.csv does not exist',
    );
    expect(await importing('list.txt', 'ada@example.net\n', '--account', 'none')).toMatchObject({
      status: 1,
      err: 'postrider: There is no account none',
    });
    expect(await suppression('list')).toMatchObject({ err: 'No suppression matches' });
  });

  it('is named where an export is imported as contacts', async () => {
    const file = join(dirname(shell.file), 'bounces.csv');
    writeFileSync(file, 'status,reason,email,created\n5.1.1,gone,ada@example.net,1672653600\n');
    const { status, err } = await shell.run('contacts', 'import', file, '--account', 'shop');
    expect([status, err]).toEqual([1, expect.stringContaining('suppressions import')]);
  });
});

describe('suppression', () => {
  it('adds, lists and removes', async () => {
    const added = await shell.json(
      'suppression',
      'add',
      'Ada <Ada@Example.net>',
      '--account',
      'shop',
      '--json',
    );
    expect(added).toEqual({
      email: 'Ada@example.net',
      contactIdentifier: 'email_ae2c0afa556b74f2d501305b54c34910',
      reason: 'manual',
      stream: 'all',
      createdAt: expect.stringMatching(/^\d{4}-.*Z$/),
    });
    expect(await suppression('add', 'ada@example.net')).toMatchObject({
      status: 0,
      out: 'Ada@example.net was already suppressed: all, manual',
    });
    expect(await shell.json('suppression', 'list', '--account', 'shop', '--json')).toEqual([added]);
    expect(await suppression('remove', 'ada@example.net')).toMatchObject({
      status: 0,
      out: 'Removed for ada@example.net: all, manual',
    });
    expect(await suppression('list')).toMatchObject({ status: 0, err: 'No suppression matches' });
  });

  it('records an opt-out with the consent of the contact', async () => {
    const file = join(dirname(shell.file), 'people.csv');
    writeFileSync(file, 'email\nada@example.net\n');
    await shell.run('contacts', 'import', file, '--account', 'shop');
    await suppression('add', 'ada@example.net', '--reason', 'unsubscribe', '--stream', 'mk');
    const shown = await shell.json('contacts', 'show', 'ada@example.net', '--account', 'shop', '--json');
    expect(shown.consents).toMatchObject([
      { action: 'withdrawn', method: 'api', recordedBy: 'command line' },
      { action: 'given', method: 'imported' },
    ]);
    expect(shown.consents[0]).not.toHaveProperty('ipAddress');
  });

  it('lists by stream, reason and address, up to a limit', async () => {
    await suppression('add', 'a@example.net', '--stream', 'mk');
    await suppression('add', 'b@example.net', '--reason', 'complaint');
    const emails = async (...filter: string[]) => {
      const rows = await shell.json('suppression', 'list', '--account', 'shop', '--json', ...filter);
      return rows.map(({ email }: { email: string }) => email);
    };
    expect(await emails()).toEqual(['b@example.net', 'a@example.net']);
    expect(await emails('--stream', 'mk')).toEqual(['a@example.net']);
    expect(await emails('--reason', 'complaint')).toEqual(['b@example.net']);
    expect(await emails('--email', 'a@example.net')).toEqual(['a@example.net']);
    expect(await emails('--limit', '1')).toEqual(['b@example.net']);
    expect(await shell.json('suppression', 'list', '--account', 'other', '--json')).toEqual([]);
    const { out, err } = await suppression('list', '--limit', '1');
    expect(out).not.toContain('more');
    expect(err).toBe('postrider: There are more than 1: --limit shows up to 1000');
  });

  it.each([
    ['no address', ['add', 'nobody', '--account', 'shop'], 2, 'has no "@"'],
    [
      'an unknown stream',
      ['add', 'a@example.net', '--account', 'shop', '--stream', 'x'],
      2,
      'choices are all',
    ],
    ['an unknown reason', ['list', '--account', 'shop', '--reason', 'x'], 2, 'choices are hard_bounce'],
    ['too many rows', ['list', '--account', 'shop', '--limit', '5000'], 2, 'from 1 to 1000'],
    ['no account', ['list'], 2, "required option '--account <id>'"],
    ['an unknown account', ['list', '--account', 'nobody'], 1, 'There is no account nobody'],
    [
      'an address that is not suppressed',
      ['remove', 'a@example.net', '--account', 'shop'],
      1,
      'There is no matching suppression',
    ],
  ])('rejects %s', async (_, args, status, message) => {
    const outcome = await shell.run('suppression', ...args);
    expect(outcome.status).toBe(status);
    expect(outcome.err).toContain(message);
  });
});

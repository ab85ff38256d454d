import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createShell, runProgram } from './run.ts';

let shell: ReturnType<typeof createShell>;
beforeEach(() => {
  shell = createShell();
});
afterEach(() => shell.remove());

describe('account create', () => {
  it('prints the id and three keys as JSON', async () => {
    const made = await shell.json('account', 'create', '--name', 'Shop');
    expect(made).toEqual({
      accountId: expect.stringMatching(/^acct_[0-9a-z]{12}$/),
      keys: {
        setup: expect.stringMatching(/^pr_/),
        marketing: expect.stringMatching(/^pr_/),
        transactional: expect.stringMatching(/^pr_/),
      },
    });
  });

  it('accepts company, address, an explicit id, and a name equal to a command', async () => {
    await shell.json(
      'account',
      'create',
      '--name',
      'queue',
      '--company',
      'Shop Ltd.',
      '--id',
      'shop',
      '--address',
      '1 Main St, Springfield, IL, 62701, US',
    );
    expect(await shell.json('account', 'list', '--json')).toMatchObject([
      {
        accountId: 'shop',
        name: 'queue',
        companyName: 'Shop Ltd.',
        companyAddress: {
          line1: '1 Main St',
          city: 'Springfield',
          region: 'IL',
          postalCode: '62701',
          country: 'US',
        },
      },
    ]);
  });

  it.each([
    ['no name', ['account', 'create'], "required option '--name <name>' not specified"],
    ['an empty name', ['account', 'create', '--name', ''], 'name: must not be empty'],
    [
      'an incomplete address',
      ['account', 'create', '--name', 'x', '--address', 'Main St 1'],
      '--address must be: street',
    ],
    [
      'an invalid id',
      ['account', 'create', '--name', 'x', '--id', 'a b'],
      'accountId: must be 1 to 64 letters',
    ],
    ['an unknown option', ['account', 'create', '--name', 'x', '--adress', 'y'], 'Did you mean --address?'],
    [
      'an option of the command above',
      ['restore', 'held', '--data', 'x'],
      'This command does not have the option',
    ],
    ['an unknown command', ['account', 'creat'], 'Did you mean create?'],
  ])('reports a usage error for %s', async (_, args, complaint) => {
    const { status, out, err } = await shell.run(...args);
    expect({ status, out }).toEqual({ status: 2, out: '' });
    expect(err).toContain(complaint);
  });

  it('fails with an existing id', async () => {
    await shell.run('account', 'create', '--name', 'Shop', '--id', 'shop');
    const { status, err } = await shell.run('account', 'create', '--name', 'Other', '--id', 'shop');
    expect(status).toBe(1);
    expect(err).toBe('postrider: Account shop already exists');
  });
});

describe('account list', () => {
  it('reports an empty list on stderr only', async () => {
    expect(await shell.run('account', 'list')).toMatchObject({ status: 0, out: '' });
    expect(await shell.json('account', 'list', '--json')).toEqual([]);
  });

  it('prints a table', async () => {
    await shell.run('account', 'create', '--name', 'Shop', '--id', 'shop');
    const { out } = await shell.run('account', 'list');
    expect(out).toMatch(/│ shop +│ Shop +│ active +│/);
  });
});

describe('account update', () => {
  it('updates given fields, and removes those of --no- options', async () => {
    await shell.run('account', 'create', '--name', 'Shop', '--id', 'shop', '--company', 'Shop Ltd.');
    await shell.run('account', 'update', 'shop', '--address', 'Musterstr. 5, 10115 Berlin, Germany');
    const updated = await shell.json('account', 'update', 'shop', '--abuse-email', 'a@b.example', '--json');
    expect(updated).toMatchObject({
      name: 'Shop',
      companyName: 'Shop Ltd.',
      companyAddress: { line1: 'Musterstr. 5', city: 'Berlin', postalCode: '10115', country: 'Germany' },
      abuseEmail: 'a@b.example',
    });
    expect(await shell.json('account', 'update', 'shop', '--no-abuse-email', '--json')).toMatchObject({
      abuseEmail: null,
    });
  });

  it.each([
    ['nothing to change', ['account', 'update', 'shop'], 2, 'Nothing to change'],
    ['a bad address', ['account', 'update', 'shop', '--address', 'x'], 2, '--address must be'],
    ['an empty address', ['account', 'update', 'shop', '--address', ''], 2, 'a postal address is required'],
    ['a blank company', ['account', 'update', 'shop', '--company', ' '], 2, '--company must not be empty'],
    ['an empty email', ['account', 'update', 'shop', '--abuse-email', ''], 2, 'use --no-abuse-email'],
    [
      'a bad logo',
      ['account', 'update', 'shop', '--logo-url', 'ftp://x'],
      2,
      'must be an http or https address',
    ],
    ['an unknown account', ['account', 'update', 'none', '--name', 'x'], 1, 'There is no account none'],
  ])('rejects %s', async (_, args, expected, complaint) => {
    const { status, err } = await shell.run(...args);
    expect(status).toBe(expected);
    expect(err).toContain(complaint);
  });
});

it('account disable and enable change the status', async () => {
  await shell.run('account', 'create', '--name', 'Shop', '--id', 'shop');
  expect((await shell.run('account', 'disable', 'shop')).out).toBe('Account shop (Shop) is disabled');
  expect(await shell.json('account', 'enable', 'shop', '--json')).toMatchObject({ status: 'active' });
  expect(await shell.run('account', 'disable', 'none')).toMatchObject({ status: 1 });
});

describe('the program', () => {
  it.each<[string, string[], number, RegExp, RegExp]>([
    ['its version', ['--version'], 0, /^\d+\.\d+\.\d+\n$/, /^$/],
    ['help', ['help', 'account'], 0, /Examples:/, /^$/],
    ['an unknown command', ['acount'], 2, /^$/, /Did you mean account\?/],
    [
      'an unknown command with --json',
      ['acount', '--json'],
      2,
      /^$/,
      /^\{"success":false,"error":\{"code":"USAGE","message":"unknown command 'acount'[^\n]*\n$/,
    ],
    ['a command without its subcommand', ['account'], 2, /^$/, /Usage: postrider account/],
    [
      'a missing configuration file',
      ['--config', '/nowhere.toml', 'account', 'list'],
      1,
      /^$/,
      /^postrider: \/nowhere.toml: cannot be read: [^\n]*\n$/,
    ],
  ])(
    '%s',
    async (_, args, status, out, err) => {
      const outcome = await runProgram(args);
      expect(outcome.status).toBe(status);
      expect(outcome.out).toMatch(out);
      expect(outcome.err).toMatch(err);
      expect(outcome.err).not.toMatch(/\n {4}at /);
    },
    20_000,
  );

  it('works while another command creates the database', async () => {
    const env = { POSTRIDER_CONFIG: shell.file };
    const outcomes = await Promise.all(
      [1, 2].map(() => runProgram(['account', 'create', '--name', 'Shop'], env)),
    );
    expect(outcomes.map(({ status, err }) => ({ status, err }))).toEqual([
      { status: 0, err: '' },
      { status: 0, err: '' },
    ]);
    expect(await shell.json('account', 'list', '--json')).toHaveLength(2);
  });
});

describe('account limits', () => {
  const make = () => shell.json('account', 'create', '--name', 'Shop', '--id', 'shop');
  const read = async (...options: string[]) =>
    (await shell.json('account', 'limits', 'shop', ...options, '--json')).limits;

  it('shows every limit with origin and usage', async () => {
    await make();
    expect(await shell.json('account', 'limits', 'shop', '--json')).toEqual({
      accountId: 'shop',
      limits: {
        domains: { value: 100, isDefault: true, used: 0 },
        webhooks: { value: 50, isDefault: true, used: 0 },
        templates: { value: 10_000, isDefault: true, used: 0 },
        contacts: { value: null, isDefault: true, used: 0 },
        messagesPerHour: { value: null, isDefault: true, used: 0 },
        messagesPerDay: { value: null, isDefault: true, used: 0 },
        concurrentRequests: { value: 64, isDefault: true, used: null },
        storedBytes: { value: 5 * 1024 ** 3, isDefault: true, used: 0 },
        campaigns: { value: 10_000, isDefault: true, used: 0 },
        subscriptionGroups: { value: 1000, isDefault: true, used: 0 },
        suppressions: { value: null, isDefault: true, used: 0 },
      },
    });
    const { out } = await shell.run('account', 'limits', 'shop');
    expect(out).toMatch(/messages-per-hour.*unlimited.*default/);
  });

  it('sets limits, and resets some or all of them to the defaults', async () => {
    await make();
    const own = (value: number | null) => ({ value, isDefault: false });
    expect(
      await read('--domains', '0', '--messages-per-hour', '1000', '--templates', 'unlimited'),
    ).toMatchObject({ domains: own(0), messagesPerHour: own(1000), templates: own(null) });
    expect(await read('--concurrent-requests', '8', '--default', 'domains')).toMatchObject({
      domains: { value: 100, isDefault: true },
      messagesPerHour: own(1000),
      concurrentRequests: own(8),
    });
    expect(await read('--default')).toMatchObject({
      templates: { value: 10_000, isDefault: true },
      messagesPerHour: { value: null, isDefault: true },
      concurrentRequests: { value: 64, isDefault: true },
    });
  });

  it.each([
    ['an unknown account', ['none'], 1, 'There is no account none'],
    ['an invalid number', ['shop', '--domains', 'many'], 2, '--domains must be a whole number'],
    ['a limit of no requests', ['shop', '--concurrent-requests', '0'], 2, 'of at least 1'],
    ['an unknown limit', ['shop', '--default', 'mails'], 2, 'there is no limit "mails"'],
  ])('rejects %s', async (_, args, status, message) => {
    await make();
    const outcome = await shell.run('account', 'limits', ...args);
    expect(outcome.status).toBe(status);
    expect(outcome.err).toContain(message);
  });
});

import { Readable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createShell } from './run.ts';

let shell: ReturnType<typeof createShell>;
beforeEach(async () => {
  shell = createShell();
  await shell.run('account', 'create', '--name', 'Shop', '--id', 'shop');
});
afterEach(() => shell.remove());

describe('key create', () => {
  it('prints the key and its secret as JSON', async () => {
    const key = await shell.json('key', 'create', '--account', 'shop', '--scope', 'setup', '--name', 'CI');
    expect(key).toEqual({
      keyId: expect.stringMatching(/^key_\d+_[0-9a-z]{12}$/),
      accountId: 'shop',
      name: 'CI',
      scopes: ['setup'],
      allowIps: [],
      allowFrom: [],
      allowEssential: true,
      strictCompliance: false,
      livemode: true,
      sigv4: false,
      createdAt: expect.stringMatching(/^\d{4}-.*Z$/),
      revokedAt: null,
      lastUsedAt: null,
      key: expect.stringMatching(/^pr_[0-9A-Za-z]{43}$/),
    });
  });

  it('accepts several values with commas, in sequence, or with repeated options', async () => {
    const key = await shell.json(
      'key',
      'create',
      '--account',
      'shop',
      '--scope',
      'marketing,transactional',
      '--scope',
      'setup',
      '--allow-ip',
      '192.0.2.0/24',
      '2001:db8::/32',
      '--allow-from',
      'Shop.example',
      '--allow-from',
      'b.example,c.example',
    );
    expect(key).toMatchObject({
      scopes: ['marketing', 'transactional', 'setup'],
      allowIps: ['192.0.2.0/24', '2001:db8::/32'],
      allowFrom: ['shop.example', 'b.example', 'c.example'],
    });
  });

  it('creates a key without essential messages and automatic footer', async () => {
    const args = ['--account', 'shop', '--scope', 'transactional', '--no-essential', '--strict-compliance'];
    const created = await shell.json('key', 'create', ...args);
    expect(created).toMatchObject({ allowEssential: false, strictCompliance: true });
    expect((await shell.run('key', 'list')).out).toMatch(/no-essential, strict-compliance/);
  });

  it('creates a key that signs requests, whose secret is encrypted and deleted with its revocation', async () => {
    const args = ['--account', 'shop', '--scope', 'transactional', '--sigv4', '--test'];
    const created = await shell.json('key', 'create', ...args);
    expect(created).toMatchObject({ sigv4: true, livemode: false, key: expect.stringMatching(/^pr_/) });
    expect((await shell.run('key', 'list')).out).toMatch(/test, sigv4/);
    const [found] = await shell.json('key', 'list', '--secret', String(created.key), '--json');
    expect(found).toMatchObject({ keyId: created.keyId, sigv4: true });
    const revoked = await shell.json('key', 'revoke', String(created.keyId), '--json');
    expect(revoked).toMatchObject({ sigv4: false, revokedAt: expect.any(String) });
  });

  it('creates a test key, which cannot concern the installation', async () => {
    const args = ['key', 'create', '--account', 'shop', '--test', '--scope'];
    expect(await shell.json(...args, 'transactional')).toMatchObject({ livemode: false });
    expect((await shell.run('key', 'list')).out).toMatch(/ test /);
    expect((await shell.run(...args, 'operator')).err).toContain('must not be operator');
  });

  it('warns about a From domain that is not registered', async () => {
    const create = ['key', 'create', '--account', 'shop', '--scope', 'transactional', '--allow-from'];
    await shell.run('domain', 'add', 'shop.example', '--account', 'shop', '--use-case', 'tx-local');
    expect(await shell.run(...create, 'shop.example')).toMatchObject({ status: 0, err: '' });
    expect(await shell.run(...create, 'shop.exmaple')).toMatchObject({
      status: 0,
      out: expect.stringContaining('"pr_'),
      err: expect.stringMatching(/^postrider: warning: shop\.exmaple is not registered in account shop: /),
    });
  });

  it.each([
    ['no account', ['--scope', 'setup'], 2, "required option '--account <id>'"],
    ['no scope', ['--account', 'shop'], 2, "required option '--scope <scopes...>'"],
    ['an empty scope', ['--account', 'shop', '--scope', ','], 2, 'must name at least one of'],
    ['an unknown scope', ['--account', 'shop', '--scope', 'admin'], 2, '"admin" is not one of setup'],
    [
      'a bad network',
      ['--account', 'shop', '--scope', 'setup', '--allow-ip', '10.0/8'],
      2,
      '"10.0/8" is not',
    ],
    [
      'a bad domain',
      ['--account', 'shop', '--scope', 'setup', '--allow-from', 'x'],
      2,
      '"x" is not a domain',
    ],
    ['an unknown account', ['--account', 'none', '--scope', 'setup'], 1, 'There is no account none'],
  ])('rejects %s', async (_, args, expected, complaint) => {
    const { status, out, err } = await shell.run('key', 'create', ...args);
    expect({ status, out }).toEqual({ status: expected, out: '' });
    expect(err).toContain(complaint);
  });
});

describe('key list', () => {
  it('shows the keys of all accounts or of one, never a secret', async () => {
    const other = await shell.json('account', 'create', '--name', 'Other', '--id', 'other');
    expect(await shell.json('key', 'list', '--json')).toHaveLength(6);
    const keys = await shell.json('key', 'list', '--account', 'other', '--json');
    expect(keys.map((key: { accountId: string }) => key.accountId)).toEqual(['other', 'other', 'other']);
    const { out } = await shell.run('key', 'list');
    for (const secret of Object.values(other.keys)) expect(out + JSON.stringify(keys)).not.toContain(secret);
    expect(out).toContain('transactional');
  });

  it('finds a leaked key by its secret, in an argument or in text on standard input', async () => {
    const args = ['--account', 'shop', '--scope', 'setup', '--name', 'leaked'];
    const { key: secret, keyId } = await shell.json('key', 'create', ...args);
    const found = [expect.objectContaining({ keyId, name: 'leaked', revokedAt: null })];
    expect(await shell.json('key', 'list', '--secret', secret, '--json')).toEqual(found);
    await shell.run('key', 'revoke', keyId);
    const input = Readable.from([
      Buffer.from(`${'x'.repeat(70_000)} API_KEY=${secret.slice(0, 20)}`),
      Buffer.from(`${secret.slice(20)}\nAPI_KEY=pr_${'x'.repeat(43)}\n`),
    ]);
    vi.spyOn(process, 'stdin', 'get').mockReturnValue(
      Object.assign(input, { fd: 0 }) as typeof process.stdin,
    );
    const { out, err } = await shell.run('key', 'list', '--secret', '-');
    expect({ rows: out.match(/key_\d+_\w+/g), err }).toEqual({ rows: [keyId], err: '' });
    expect(out).not.toContain(secret);
  });

  it.each([
    ['a part of a secret', 'pr_4kx0', 2, /contains no API key: .* only its hash is stored/],
    ['a secret of another installation', `pr_${'x'.repeat(43)}`, 1, /No key has this secret/],
  ])('reports that no key belongs to %s', async (_, secret, status, message) => {
    expect(await shell.run('key', 'list', '--secret', secret)).toMatchObject({
      status,
      out: '',
      err: expect.stringMatching(message),
    });
  });

  it('fails for an unknown account', async () => {
    expect(await shell.run('key', 'list', '--account', 'none')).toMatchObject({ status: 1 });
  });
});

it('key revoke revokes a key once', async () => {
  const { keyId } = await shell.json('key', 'create', '--account', 'shop', '--scope', 'setup');
  expect((await shell.run('key', 'revoke', keyId)).out).toBe(`Key ${keyId} is revoked`);
  expect(await shell.run('key', 'revoke', keyId)).toMatchObject({ status: 1 });
  expect(await shell.run('key', 'revoke', 'key_none')).toMatchObject({ status: 1 });
  const keys = await shell.json('key', 'list', '--json');
  expect(keys.filter((key: { revokedAt: string | null }) => key.revokedAt !== null)).toHaveLength(1);
});

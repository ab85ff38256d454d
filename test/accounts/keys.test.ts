import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createAccounts } from '../../src/accounts/accounts.ts';
import { type ApiKeyInput, createKeys, type KeyRights } from '../../src/accounts/keys.ts';
import { iso } from '../../src/core/clock.ts';
import { codeOf, granted, openStore } from './store.ts';

let store: ReturnType<typeof openStore>;
beforeEach(async () => {
  store = openStore();
  granted(await createAccounts(store).create({ name: 'Shop', accountId: 'shop' }));
});
afterEach(() => store.close());

const input = (more: Partial<ApiKeyInput>): ApiKeyInput => ({
  accountId: 'shop',
  name: '',
  scopes: ['setup'],
  ...more,
});

describe('a new key', () => {
  it('has each scope once, networks in one spelling and domains as lower-case A-labels', async () => {
    const { key, secret } = granted(
      await createKeys(store).create(
        input({
          name: 'CI',
          scopes: ['setup', ' transactional', 'setup'],
          allowIps: ['192.0.2.0/24', '192.0.2.7', '2001:DB8:0::/32', '::ffff:198.51.100.1'],
          allowFrom: ['Example.COM', 'bücher.example.', 'example.com'],
        }),
      ),
    );
    expect(secret).toMatch(/^pr_[0-9A-Za-z]{43}$/);
    expect(key).toMatchObject({
      accountId: 'shop',
      name: 'CI',
      scopes: ['setup', 'transactional'],
      allowIps: ['192.0.2.0/24', '192.0.2.7', '2001:db8::/32', '198.51.100.1'],
      allowFrom: ['example.com', 'xn--bcher-kva.example'],
      allowEssential: true,
      strictCompliance: false,
      livemode: true,
      revokedAt: null,
    });
    expect(createKeys(store).list('shop')).toContainEqual(key);
  });

  it.each<[string, Partial<ApiKeyInput>, string]>([
    ['no scope', { scopes: [] }, 'VALIDATION_ERROR'],
    ['an unknown scope', { scopes: ['admin'] }, 'VALIDATION_ERROR'],
    ['an invalid address', { allowIps: ['10.0.0'] }, 'VALIDATION_ERROR'],
    ['an invalid prefix length', { allowIps: ['10.0.0.0/33'] }, 'VALIDATION_ERROR'],
    ['an invalid domain', { allowFrom: ['localhost'] }, 'VALIDATION_ERROR'],
    ['a domain with a path', { allowFrom: ['example.com/x'] }, 'VALIDATION_ERROR'],
    ['a name with a line break', { name: 'a\nb' }, 'VALIDATION_ERROR'],
    ['an unknown account', { accountId: 'nobody' }, 'ACCOUNT_NOT_FOUND'],
  ])('is refused with %s', async (_, more, code) => {
    const keys = createKeys(store);
    expect(codeOf(await keys.create(input(more)))).toBe(code);
    expect(keys.list(null)).toHaveLength(3);
  });
});

describe('revoking a key', () => {
  it('sets the time in the list, and is refused the second time', async () => {
    const keys = createKeys(store);
    const { key } = granted(await keys.create(input({})));
    store.clock.time += 1000;

    expect(granted(await keys.revoke(key.keyId)).revokedAt).toBe(iso(store.clock.time));
    expect(keys.list('shop').find(({ keyId }) => keyId === key.keyId)?.revokedAt).toBe(iso(store.clock.time));
    expect(codeOf(await keys.revoke(key.keyId))).toBe('INVALID_STATE');
    expect(codeOf(await keys.revoke('key_none'))).toBe('KEY_NOT_FOUND');
  });
});

it('lists the keys of one account or of all', async () => {
  granted(await createAccounts(store).create({ name: 'Other', accountId: 'other' }));
  const keys = createKeys(store);
  expect(keys.list('other').map(({ accountId }) => accountId)).toEqual(['other', 'other', 'other']);
  expect(keys.list(null)).toHaveLength(6);
});

describe('a key that another key creates', () => {
  const ALL: KeyRights = {
    scopes: ['setup', 'marketing', 'transactional'],
    allowIps: [],
    allowFrom: [],
    allowEssential: true,
    strictCompliance: false,
    livemode: true,
  };
  it.each<[string, Partial<KeyRights>, Partial<ApiKeyInput>]>([
    ['a scope', { scopes: ['setup'] }, { scopes: ['setup', 'marketing'] }],
    ['the scope of operators', {}, { scopes: ['operator'] }],
    ['any network', { allowIps: ['192.0.2.0/24'] }, {}],
    ['another network', { allowIps: ['192.0.2.0/24'] }, { allowIps: ['192.0.2.7', '198.51.100.7'] }],
    ['a larger network', { allowIps: ['192.0.2.0/24'] }, { allowIps: ['192.0.0.0/16'] }],
    ['a network around an address', { allowIps: ['192.0.2.7'] }, { allowIps: ['192.0.2.7/31'] }],
    ['any domain', { allowFrom: ['a.example'] }, {}],
    ['another domain', { allowFrom: ['a.example'] }, { allowFrom: ['a.example', 'b.example'] }],
    ['essential mail', { allowEssential: false }, {}],
    ['mail without the footer', { strictCompliance: true }, {}],
    ['live mail', { livemode: false }, {}],
  ])('cannot have more rights: %s', async (_, creator, more) => {
    const created = await createKeys(store).create(input(more), { ...ALL, ...creator });
    expect(codeOf(created)).toBe('INSUFFICIENT_SCOPE');
    expect(createKeys(store).list(null)).toHaveLength(3);
  });

  it('may have the same rights or less', async () => {
    const creator: KeyRights = {
      scopes: ['setup', 'marketing'],
      allowIps: ['192.0.2.0/24', '2001:db8::/32'],
      allowFrom: ['a.example', 'b.example'],
      allowEssential: false,
      strictCompliance: true,
      livemode: false,
    };
    const same = granted(await createKeys(store).create(input(creator), creator));
    expect(same.key).toMatchObject(creator);
    const less = {
      ...creator,
      scopes: ['marketing'],
      allowIps: ['192.0.2.128/25', '2001:db8:1::1'],
      allowFrom: ['b.example'],
    };
    expect(granted(await createKeys(store).create(input(less), creator)).key).toMatchObject(less);
  });
});

it('limits the valid keys of an account', async () => {
  const keys = createKeys(store);
  await Promise.all(Array.from({ length: 497 }, async () => granted(await keys.create(input({})))));
  expect(codeOf(await keys.create(input({})))).toBe('LIMIT_REACHED');
  const [oldest] = keys.list('shop');
  granted(await keys.revoke(oldest?.keyId ?? ''));
  granted(await keys.create(input({})));
});

it('limits the keys of an account with revoked ones', async () => {
  const keys = createKeys(store);
  for (let n = store.tables.apiKeys.count('shop'); n < 1000; n += 1) {
    const { key } = granted(await keys.create(input({})));
    granted(await keys.revoke(key.keyId));
  }
  const refusal = await keys.create(input({}));
  expect(refusal).toMatchObject({
    code: 'LIMIT_REACHED',
    message: expect.stringContaining('1000 keys, with revoked ones'),
  });
  // As the retention does.
  await store.writer.run((tx) => tx.retention.revokedKeys.purge(store.clock.time + 1, 10));
  granted(await keys.create(input({})));
  expect(store.tables.apiKeys.count('shop')).toBe(991);
});

it('lists the keys of an account page by page, oldest first', async () => {
  const keys = createKeys(store);
  for (const scope of ['operator', 'setup']) {
    store.clock.time += 1;
    granted(await keys.create(input({ scopes: [scope] })));
  }
  const namesOf = (withOperators: boolean) => {
    const listed: string[] = [];
    for (let afterId: string | null = null; ; ) {
      const page = keys.page({ accountId: 'shop', afterId, withOperators, limit: 2 });
      if (page === null) throw new Error('the page does not exist');
      listed.push(...page.rows.map(({ keyId }) => keyId));
      if (!page.more) return listed;
      afterId = listed.at(-1) ?? null;
    }
  };
  const all = keys.list('shop');
  expect(namesOf(true)).toEqual(all.map(({ keyId }) => keyId));
  expect(namesOf(false)).toEqual(
    all.filter(({ scopes }) => !scopes.includes('operator')).map(({ keyId }) => keyId),
  );
  expect(keys.page({ accountId: 'other', afterId: all[0]?.keyId ?? '', withOperators: true, limit: 2 })).toBe(
    null,
  );
});

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createAccounts } from '../../src/accounts/accounts.ts';
import { type ApiKeyInput, createKeys } from '../../src/accounts/keys.ts';
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

    expect(granted(await keys.revoke(key.keyId)).revokedAt).toBe(store.clock.time);
    expect(keys.list('shop').find(({ keyId }) => keyId === key.keyId)?.revokedAt).toBe(store.clock.time);
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

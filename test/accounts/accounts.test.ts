import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createAccounts } from '../../src/accounts/accounts.ts';
import { iso } from '../../src/core/clock.ts';
import { codeOf, granted, openStore } from './store.ts';

let store: ReturnType<typeof openStore>;
beforeEach(() => {
  store = openStore();
});
afterEach(() => store.close());

const ADDRESS = { line1: '1 Main St', city: 'Springfield', postalCode: '62701', country: 'US' };

describe('a new account', () => {
  it('has a default domain group and one key for each scope', async () => {
    const accounts = createAccounts(store);
    const { account, keys } = granted(await accounts.create({ name: 'Shop' }));

    expect(account).toMatchObject({ name: 'Shop', status: 'active', companyName: null });
    expect(account.accountId).toMatch(/^acct_[0-9a-z]{12}$/);
    expect(store.tables.domainGroups.defaultOf(account.accountId)).toMatchObject({ name: 'Default' });
    expect(Object.keys(keys)).toEqual(['setup', 'marketing', 'transactional']);
    for (const secret of Object.values(keys)) expect(secret).toMatch(/^pr_[0-9A-Za-z]{43}$/);
    expect(store.tables.apiKeys.list(account.accountId).map((key) => key.scopes)).toEqual(
      expect.arrayContaining(['["setup"]', '["marketing"]', '["transactional"]']),
    );
  });

  it('is stored without the secrets of its keys, only their hashes', async () => {
    const { account, keys } = granted(await createAccounts(store).create({ name: 'Shop' }));
    const rows = JSON.stringify(store.tables.apiKeys.list(account.accountId));
    for (const secret of Object.values(keys)) expect(rows).not.toContain(secret);
  });

  it('can have a given id; an existing id is refused without a change', async () => {
    const accounts = createAccounts(store);
    granted(await accounts.create({ name: 'Shop', accountId: 'shop' }));
    const again = await accounts.create({ name: 'Other', accountId: 'shop' });

    expect(codeOf(again)).toBe('INVALID_STATE');
    expect(accounts.list().map(({ name }) => name)).toEqual(['Shop']);
    expect(store.tables.apiKeys.list('shop')).toHaveLength(3);
  });
});

describe('updating an account', () => {
  it('replaces given fields, removes those that are null, and does not change the others', async () => {
    const accounts = createAccounts(store);
    const { account } = granted(
      await accounts.create({ name: 'Shop', companyName: 'Shop Ltd.', companyAddress: ADDRESS }),
    );
    store.clock.time += 5000;
    const changed = granted(
      await accounts.update(account.accountId, {
        name: 'New',
        companyAddress: null,
        abuseEmail: 'a@b.example',
      }),
    );

    expect(changed).toMatchObject({
      name: 'New',
      companyName: 'Shop Ltd.',
      companyAddress: null,
      abuseEmail: 'a@b.example',
      createdAt: account.createdAt,
      updatedAt: iso(Date.parse(account.createdAt) + 5000),
    });
    expect(accounts.get(account.accountId)).toEqual(changed);
  });

  it('disables and enables it, also repeatedly', async () => {
    const accounts = createAccounts(store);
    const { account } = granted(await accounts.create({ name: 'Shop' }));
    for (const status of ['disabled', 'disabled', 'active', 'active'] as const) {
      expect(granted(await accounts.setStatus(account.accountId, status)).status).toBe(status);
    }
  });

  it('refuses an unknown account', async () => {
    const accounts = createAccounts(store);
    expect(codeOf(await accounts.update('acct_none', { name: 'x' }))).toBe('ACCOUNT_NOT_FOUND');
    expect(codeOf(await accounts.setStatus('acct_none', 'disabled'))).toBe('ACCOUNT_NOT_FOUND');
    expect(accounts.get('acct_none')).toBeNull();
  });
});

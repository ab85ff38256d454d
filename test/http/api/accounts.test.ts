import { afterAll, describe, expect, it } from 'vitest';
import { type ApiClient, createApiClient } from '../../support/api-client.ts';
import { startInProcess } from '../../support/in-process-daemon.ts';

const daemon = await startInProcess({ 'limits.account.domains': 5 });
afterAll(() => daemon.stop());
/** The account of the operator. */
const api = await daemon.account('Shop');

interface ListedAccount {
  createdAt: string;
  accountId: string;
  name: string;
  status: string;
}

interface ListedKey {
  keyId: string;
  name: string;
  scopes: string[];
  lastUsedAt: string | null;
  revokedAt: string | null;
}

const keysOf = async (accountId: string) =>
  (await api.get<{ keys: ListedKey[] }>(`/web-setup/accounts/${accountId}/keys`)).data.keys;

/** A client of an account with another key for /web-setup. */
const clientWith = ({ accountId, keys }: ApiClient, secret: string) =>
  createApiClient(daemon.url, { accountId, keys: { ...keys, setup: secret } });

describe('the operations of operators', () => {
  it('reject the keys of accounts', async () => {
    const headers = { 'X-Api-Key': api.keys.setup };
    for (const [method, path, body] of [
      ['GET', ''],
      ['POST', '', { name: 'New' }],
      ['GET', `/${api.accountId}`],
      ['PATCH', `/${api.accountId}`, {}],
      ['PUT', `/${api.accountId}/status`, { status: 'disabled' }],
      ['GET', `/${api.accountId}/keys`],
      ['POST', `/${api.accountId}/keys`, { scopes: ['setup'] }],
      ['DELETE', `/${api.accountId}/keys/key_1`],
    ] as const) {
      const { status } = await api.call(method, `/web-setup/accounts${path}`, { body, headers });
      expect([method, path, status]).toEqual([method, path, 403]);
    }
  });

  it('name fields that a change cannot set, whatever else the account has', async () => {
    const path = `/web-setup/accounts/${api.accountId}`;
    const warningsOf = async (body: object) =>
      (await api.call<{ warnings?: string[] }>('PATCH', path, { body })).data.warnings;
    expect(await warningsOf({ status: 'disabled' })).toEqual(['read-only field "status" was ignored']);
    expect(await warningsOf({ status: 'active', accountId: api.accountId })).toBeUndefined();
  });

  it('answer 404 for an unknown account', async () => {
    for (const [method, path, body] of [
      ['GET', ''],
      ['PATCH', '', { name: 'New' }],
      ['PUT', '/status', { status: 'active' }],
      ['GET', '/keys'],
      ['POST', '/keys', { scopes: ['setup'] }],
    ] as const) {
      const response = await api.call(method, `/web-setup/accounts/acct_none${path}`, { body });
      expect([method, path, response.error.code]).toEqual([method, path, 'ACCOUNT_NOT_FOUND']);
    }
  });
});

describe('accounts', () => {
  it('are listed page by page, oldest first, and found by a part of the name or id', async () => {
    const names = ['Alpha', 'Beta', 'alphabet'];
    const created: string[] = [];
    for (const name of names) created.push((await daemon.account(name)).accountId);
    const listed: ListedAccount[] = [];
    for (let nextKey: string | undefined, first = true; first || nextKey !== undefined; first = false) {
      const more = nextKey === undefined ? '' : `&lastKey=${nextKey}`;
      const { data } = await api.get<{ accounts: ListedAccount[]; count: number; nextKey?: string }>(
        `/web-setup/accounts?limit=2${more}`,
      );
      expect(data.accounts).toHaveLength(data.count);
      listed.push(...data.accounts);
      ({ nextKey } = data);
    }
    // Accounts of the same millisecond are in the order of their ids.
    expect(new Set(listed.slice(-3).map(({ accountId }) => accountId))).toEqual(new Set(created));
    const times = listed.map(({ createdAt }) => createdAt);
    expect(times).toEqual(times.toSorted());
    expect(new Set(listed.map(({ accountId }) => accountId)).size).toBe(listed.length);
    const found = await api.get<{ accounts: ListedAccount[] }>('/web-setup/accounts?search=aLPHa');
    expect(found.data.accounts.map(({ name }) => name)).toEqual(['Alpha', 'alphabet']);
    const [, beta] = created;
    expect(await api.get(`/web-setup/accounts?search=${beta}`)).toMatchObject({
      data: { accounts: [{ accountId: beta, status: 'active' }], count: 1 },
    });
    expect((await api.get('/web-setup/accounts?lastKey=abc')).error.code).toBe('VALIDATION_ERROR');
  });

  it('are created with limits and a key for each scope', async () => {
    const body = { name: 'New', accountId: 'acct_new', limits: { messagesPerDay: 100, contacts: null } };
    const { status, data } = await api.post<{
      account: ListedAccount;
      keys: ApiClient['keys'];
    }>('/web-setup/accounts', body);
    expect([status, data.account.status]).toEqual([201, 'active']);
    const client = createApiClient(daemon.url, { accountId: 'acct_new', keys: data.keys });
    expect((await client.get('/web-setup/account')).status).toBe(200);
    expect(await api.get('/web-setup/accounts/acct_new')).toMatchObject({
      data: {
        name: 'New',
        limits: {
          messagesPerDay: { value: 100, isDefault: false, used: 0 },
          contacts: { value: null, isDefault: false, used: 0 },
          domains: { value: 5, isDefault: true, used: 0 },
          concurrentRequests: { value: 1000, isDefault: true, used: null },
        },
      },
    });
    expect((await api.post('/web-setup/accounts', body)).error.code).toBe('INVALID_STATE');
  });

  it('are updated, with a limit that applies to the next request', async () => {
    const other = await daemon.account('Limited');
    const path = `/web-setup/accounts/${other.accountId}`;
    const patch = (body: object) => api.call('PATCH', path, { body });
    expect(await patch({ name: 'Renamed', limits: { templates: 1, domains: 0 } })).toMatchObject({
      status: 200,
      data: {
        name: 'Renamed',
        companyName: 'Limited Ltd',
        limits: { templates: { value: 1, isDefault: false, used: 0 }, domains: { value: 0 } },
      },
    });
    const template = { name: 'A', html: '<p>A</p>' };
    expect((await other.post('/web-setup/templates', template)).status).toBeLessThan(300);
    expect((await other.post('/web-setup/templates', template)).error.code).toBe('LIMIT_REACHED');
    expect(await patch({ limits: { domains: 'default' } })).toMatchObject({
      data: { limits: { templates: { value: 1, used: 1 }, domains: { value: 5, isDefault: true } } },
    });
    for (const limits of [{ domains: -1 }, { domains: 1.5 }, { domains: 'many' }, { concurrentRequests: 0 }])
      expect((await patch({ limits })).error.details?.[0]?.field).toBe(`limits.${Object.keys(limits)[0]}`);
  });

  it('are disabled, so that their keys are rejected, but never the account of the calling key', async () => {
    const other = await daemon.account('Other');
    const put = (accountId: string, status: string) =>
      api.put(`/web-setup/accounts/${accountId}/status`, { status });
    expect((await put(other.accountId, 'disabled')).data).toMatchObject({ status: 'disabled' });
    expect((await other.get('/web-setup/account')).error.code).toBe('ACCOUNT_DISABLED');
    expect((await put(other.accountId, 'active')).status).toBe(200);
    expect((await other.get('/web-setup/account')).status).toBe(200);
    expect((await put(api.accountId, 'disabled')).error.code).toBe('INVALID_STATE');
    expect((await put(api.accountId, 'active')).status).toBe(200);
  });
});

describe('the keys of an account', () => {
  it('are listed without their secrets, and revoked with the account named', async () => {
    const other = await daemon.account('Keys');
    const path = `/web-setup/accounts/${other.accountId}/keys`;
    const listed = await api.get(path);
    expect(listed.data).toMatchObject({
      count: 4,
      keys: [{ revokedAt: null, lastUsedAt: null }, {}, {}, {}],
    });
    for (const secret of Object.values(other.keys)) expect(listed.text).not.toContain(secret);
    expect(listed.text).not.toContain('hash');
    const [key] = await keysOf(other.accountId);
    const wrong = await api.call('DELETE', `/web-setup/accounts/${api.accountId}/keys/${key?.keyId}`);
    expect(wrong.error.code).toBe('KEY_NOT_FOUND');
    expect((await api.call('DELETE', `${path}/${key?.keyId}`)).data).toMatchObject({
      revokedAt: expect.any(String),
    });
    expect((await api.call('DELETE', `${path}/${key?.keyId}`)).error.code).toBe('KEY_NOT_FOUND');
  });

  it('are created with restrictions, but not for operators', async () => {
    const other = await daemon.account('Restricted');
    const path = `/web-setup/accounts/${other.accountId}/keys`;
    const body = { name: 'CI', scopes: ['setup'], allowIps: ['192.0.2.0/24'] };
    const { status, data } = await api.post<{ key: ListedKey; secret: string }>(path, body);
    expect([status, data.key]).toMatchObject([201, { ...body, lastUsedAt: null }]);
    const refused = await clientWith(other, data.secret).get('/web-setup/account');
    expect(refused.error.code).toBe('KEY_NOT_ALLOWED');
    for (const wrong of [{ scopes: ['operator'] }, { scopes: [] }, { ...body, allowIps: ['10.0.0'] }])
      expect((await api.post(path, wrong)).error.code).toBe('VALIDATION_ERROR');
  });
});

describe('the own keys', () => {
  it('are created, used and revoked with the scope setup', async () => {
    const own = await daemon.account('Own');
    const body = { name: 'second', scopes: ['setup'] };
    const { data } = await own.post<{ key: ListedKey; secret: string }>('/web-setup/keys', body);
    const second = clientWith(own, data.secret);
    expect((await second.get('/web-setup/account')).status).toBe(200);
    expect((await own.call('DELETE', `/web-setup/keys/${data.key.keyId}`)).status).toBe(200);
    expect((await second.get('/web-setup/account')).error.code).toBe('UNAUTHENTICATED');
  });

  it('have no more rights than the key that creates them', async () => {
    const own = await daemon.account('Rights');
    const refused = await own.post('/web-setup/keys', { scopes: ['setup', 'marketing'] });
    expect([refused.status, refused.error.details]).toMatchObject([403, [{ field: 'scopes' }]]);
    const path = `/web-setup/accounts/${own.accountId}/keys`;
    const limited = { scopes: ['setup'], allowIps: ['127.0.0.0/8'], allowFrom: ['a.example'] };
    const { data } = await api.post<{ secret: string }>(path, limited);
    const restricted = clientWith(own, data.secret);
    const create = (body: object) => restricted.post('/web-setup/keys', body);
    expect((await create({ scopes: ['setup'] })).error.details?.[0]?.field).toBe('allowIps');
    expect((await create({ ...limited, allowFrom: ['b.example'] })).error.details?.[0]?.field).toBe(
      'allowFrom',
    );
    expect((await create({ ...limited, allowIps: ['127.0.0.1'] })).status).toBe(201);
  });

  it('do not include those of other accounts and of operators', async () => {
    const own = await daemon.account('Hidden');
    const { data } = await own.get<{ keys: ListedKey[] }>('/web-setup/keys');
    // Keys of the same time are ordered by their ids.
    expect(data.keys.flatMap(({ scopes }) => scopes).toSorted()).toEqual([
      'marketing',
      'setup',
      'transactional',
    ]);
    const operator = (await keysOf(own.accountId)).find(({ scopes }) => scopes.includes('operator'));
    const foreign = (await keysOf(api.accountId))[0];
    for (const keyId of [operator?.keyId, foreign?.keyId])
      expect((await own.call('DELETE', `/web-setup/keys/${keyId}`)).error.code).toBe('KEY_NOT_FOUND');
  });
});

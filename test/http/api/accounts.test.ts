import { afterEach, beforeEach, expect, it } from 'vitest';
import { installationAccountRoutes } from '../../../src/http/api/accounts.ts';
import { type Api, jsonOf, startApi } from '../harness.ts';

let api: Api;
let operator: Record<string, string>;
beforeEach(async () => {
  // The routes need the accounts of the listener that serves them.
  const routes = installationAccountRoutes({
    accounts: {
      get: (id) => api.accounts.get(id),
      list: () => api.accounts.list(),
      setStatus: (id, status) => api.accounts.setStatus(id, status),
    },
    keys: { list: (id) => api.keys.list(id), revoke: (id) => api.keys.revoke(id) },
  });
  api = await startApi({ routes });
  const created = await api.keys.create({
    accountId: api.account.accountId,
    name: 'operator',
    scopes: ['operator'],
  });
  if (!('secret' in created)) throw new Error(JSON.stringify(created));
  operator = { 'X-Api-Key': created.secret, 'X-Id': api.account.accountId };
});
afterEach(() => api.stop());

async function call(method: string, path: string, body?: object, headers = operator) {
  const response = await fetch(`${api.base}/web-setup/accounts${path}`, {
    method,
    headers: { ...headers, ...(body === undefined ? {} : { 'Content-Type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: await jsonOf(response) };
}

async function createOther() {
  const created = await api.accounts.create({ name: 'Other Shop', accountId: 'acct_other' });
  if (!('account' in created)) throw new Error(JSON.stringify(created));
  const key = api.keys.list('acct_other')[0];
  if (key === undefined) throw new Error('The account has no key');
  return { secrets: created.keys, key };
}

it('rejects the keys of accounts', async () => {
  for (const [method, path, body] of [
    ['GET', ''],
    ['PUT', `/${api.account.accountId}/status`, { status: 'disabled' }],
    ['GET', `/${api.account.accountId}/keys`],
    ['DELETE', `/${api.account.accountId}/keys/key_1`],
  ] as const) {
    expect(await call(method, path, body, api.as('setup'))).toMatchObject({ status: 403 });
  }
});

it('lists accounts page by page and finds them by a part of the name', async () => {
  await createOther();
  const first = await call('GET', '?limit=1');
  expect(first.body).toMatchObject({ data: { count: 1, nextKey: expect.any(String) } });
  expect(await call('GET', '?search=oTHER')).toMatchObject({
    status: 200,
    body: {
      data: { accounts: [{ accountId: 'acct_other', name: 'Other Shop', status: 'active' }], count: 1 },
    },
  });
});

it('disables an account, whose keys are rejected until it is enabled', async () => {
  const { secrets } = await createOther();
  const own = { 'X-Api-Key': secrets.setup, 'X-Id': 'acct_other' };
  expect(await call('PUT', '/acct_other/status', { status: 'disabled' })).toMatchObject({
    status: 200,
    body: { data: { accountId: 'acct_other', status: 'disabled' } },
  });
  const refused = await call('GET', '', undefined, own);
  expect(JSON.stringify(refused.body)).toContain('ACCOUNT_DISABLED');
  expect((await call('PUT', '/acct_other/status', { status: 'active' })).status).toBe(200);
  expect(JSON.stringify((await call('GET', '', undefined, own)).body)).toContain('INSUFFICIENT_SCOPE');
  expect((await call('PUT', '/acct_none/status', { status: 'active' })).status).toBe(404);
});

it('lists the keys of one account without their secrets', async () => {
  const { secrets } = await createOther();
  const { status, body } = await call('GET', '/acct_other/keys');
  expect(status).toBe(200);
  expect(body).toMatchObject({ data: { count: 3, keys: [{ revokedAt: null }, {}, {}] } });
  const text = JSON.stringify(body);
  for (const secret of Object.values(secrets)) expect(text).not.toContain(secret);
  expect(text).not.toContain('hash');
  expect((await call('GET', '/acct_none/keys')).status).toBe(404);
});

it('revokes a key of the named account only', async () => {
  const { key } = await createOther();
  expect((await call('DELETE', `/${api.account.accountId}/keys/${key.keyId}`)).status).toBe(404);
  expect(api.keys.list('acct_other').every(({ revokedAt }) => revokedAt === null)).toBe(true);
  expect(await call('DELETE', `/acct_other/keys/${key.keyId}`)).toMatchObject({
    status: 200,
    body: { data: { keyId: key.keyId, revokedAt: expect.any(String) } },
  });
  expect((await call('DELETE', `/acct_other/keys/${key.keyId}`)).status).toBe(404);
});

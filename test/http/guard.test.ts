import { request } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { granted } from '../accounts/store.ts';
import { type Api, jsonOf, startApi } from './harness.ts';
import { sampleRoutes } from './sample-routes.ts';

let api: Api;
beforeAll(async () => {
  api = await startApi({ routes: sampleRoutes });
});
afterAll(() => api.stop());

const JSON_BODY = { 'Content-Type': 'application/json' };

function post(path: string, headers: Record<string, string>, body: string) {
  return fetch(api.base + path, { method: 'POST', headers, body });
}

function bearer(api: Api, scope: keyof Api['secrets'], accountId?: string): Record<string, string> {
  return {
    Authorization: `Bearer ${api.secrets[scope]}`,
    ...(accountId === undefined ? {} : { 'X-Id': accountId }),
  };
}

describe('authentication', () => {
  it.each<[string, (api: Api) => Record<string, string>, number, string]>([
    ['no key', () => ({}), 401, 'UNAUTHENTICATED'],
    ['no account id', (api) => ({ 'X-Api-Key': api.secrets.setup }), 401, 'UNAUTHENTICATED'],
    ['an unknown key', (api) => ({ ...api.as('setup'), 'X-Api-Key': 'pr_x' }), 401, 'UNAUTHENTICATED'],
    ['another account id', (api) => ({ ...api.as('setup'), 'X-Id': 'acct_other' }), 401, 'UNAUTHENTICATED'],
    ['a key with another scope', (api) => api.as('marketing'), 403, 'INSUFFICIENT_SCOPE'],
    ['the right key', (api) => api.as('setup'), 200, ''],
    ['a bearer token', (api) => ({ Authorization: `Bearer ${api.secrets.setup}` }), 200, ''],
    ['a scheme in lower case', (api) => ({ Authorization: `bearer ${api.secrets.setup}` }), 200, ''],
    ['a bearer token and its account', (api) => bearer(api, 'setup', api.as('setup')['X-Id']), 200, ''],
    ['a bearer token and another account', (api) => bearer(api, 'setup', 'acct_o'), 401, 'UNAUTHENTICATED'],
    ['a bearer token and an empty account', (api) => bearer(api, 'setup', ''), 401, 'UNAUTHENTICATED'],
    ['a bearer token of another scope', (api) => bearer(api, 'marketing'), 403, 'INSUFFICIENT_SCOPE'],
    ['an unknown bearer token', () => ({ Authorization: 'Bearer pr_x' }), 401, 'UNAUTHENTICATED'],
    ['an empty bearer token', () => ({ Authorization: 'Bearer ' }), 401, 'UNAUTHENTICATED'],
    ['another scheme', (api) => ({ Authorization: `Basic ${api.secrets.setup}` }), 401, 'UNAUTHENTICATED'],
    [
      'a key, and the credentials of a proxy',
      (api) => ({ ...api.as('setup'), Authorization: 'Basic eDp5' }),
      200,
      '',
    ],
    [
      'a wrong key, and a valid bearer token',
      (api) => ({ ...bearer(api, 'setup', api.as('setup')['X-Id']), 'X-Api-Key': 'pr_x' }),
      401,
      'UNAUTHENTICATED',
    ],
  ])('%s', async (_, headers, status, code) => {
    const response = await fetch(`${api.base}/web-setup/things/one`, { headers: headers(api) });
    const body = await jsonOf(response);
    expect(response.status).toBe(status);
    expect(body['reasonCode'] ?? '').toBe(code);
    expect(response.headers.has('www-authenticate')).toBe(status === 401);
  });

  it('has identical responses for all invalid keys, except the request id', async () => {
    const texts = await Promise.all(
      [
        {},
        { 'X-Api-Key': 'pr_x', 'X-Id': 'y' },
        { ...api.as('setup'), 'X-Id': 'acct_other' },
        { Authorization: 'Bearer pr_x' },
        bearer(api, 'setup', 'acct_other'),
      ].map(async (headers) =>
        (
          await fetch(`${api.base}/web-setup/things/one`, {
            headers: { ...headers, 'X-Request-Id': 'same' },
          })
        ).text(),
      ),
    );
    expect(new Set(texts).size).toBe(1);
  });

  it('refuses two bearer tokens', async () => {
    const { status } = await new Promise<{ status: number | undefined }>((resolve, reject) => {
      const value = `Bearer ${api.secrets.setup}`;
      const req = request(`${api.base}/web-setup/things/one`, (res) => {
        res.resume();
        resolve({ status: res.statusCode });
      });
      req.setHeader('Authorization', [value, value]);
      req.on('error', reject);
      req.end();
    });
    expect(status).toBe(401);
  });

  it('refuses revoked keys and disabled accounts immediately', async () => {
    const { accountId } = granted(await api.accounts.create({ name: 'Other' })).account;
    const { key, secret } = granted(await api.keys.create({ accountId, name: '', scopes: ['setup'] }));
    const status = async () =>
      (
        await fetch(`${api.base}/web-setup/things/one`, {
          headers: { 'X-Api-Key': secret, 'X-Id': accountId },
        })
      ).status;

    expect(await status()).toBe(200);
    await api.accounts.setStatus(accountId, 'disabled');
    expect(await status()).toBe(403);
    await api.accounts.setStatus(accountId, 'active');
    expect(await status()).toBe(200);
    await api.keys.revoke(key.keyId);
    expect(await status()).toBe(401);
  });
});

describe('the order of checks', () => {
  it.each<[string, (api: Api) => Record<string, string>, string, string]>([
    ['key before content type', () => ({ 'Content-Type': 'text/plain' }), '{', 'UNAUTHENTICATED'],
    [
      'scope before content type',
      (api) => ({ ...api.as('marketing'), 'Content-Type': 'text/plain' }),
      '{',
      'INSUFFICIENT_SCOPE',
    ],
    [
      'content type before JSON',
      (api) => ({ ...api.as('setup'), 'Content-Type': 'text/plain' }),
      '{',
      'UNSUPPORTED_MEDIA_TYPE',
    ],
    [
      'content type before size',
      (api) => ({ ...api.as('setup'), 'Content-Type': 'text/plain' }),
      'x'.repeat(5000),
      'UNSUPPORTED_MEDIA_TYPE',
    ],
    [
      'size before JSON',
      (api) => ({ ...api.as('setup'), ...JSON_BODY }),
      '{'.repeat(5000),
      'PAYLOAD_TOO_LARGE',
    ],
    ['JSON before schema', (api) => ({ ...api.as('setup'), ...JSON_BODY }), '{', 'INVALID_JSON'],
    ['schema last', (api) => ({ ...api.as('setup'), ...JSON_BODY }), '{}', 'VALIDATION_ERROR'],
  ])('%s', async (_, headers, body, code) => {
    const response = await post('/web-setup/things', headers(api), body);
    expect((await jsonOf(response))['reasonCode']).toBe(code);
  });

  it('refuses a client without a key before it sends the body', async () => {
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const req = request(`${api.base}/web-setup/things`, {
        method: 'POST',
        headers: { ...JSON_BODY, 'Content-Length': '900' },
      });
      req.on('response', (res) => {
        resolve(res.statusCode);
        req.destroy();
      });
      req.on('error', reject);
      req.flushHeaders();
    });
    expect(status).toBe(401);
  });
});

describe('parameters', () => {
  const get = async (path: string) => {
    const response = await fetch(api.base + path, { headers: api.as('setup') });
    return { status: response.status, body: await jsonOf(response) };
  };

  it.each<[string, string | null, string | null]>([
    ['/web-setup/things/one?limit=200', null, null],
    ['/web-setup/things/one?limit=0', 'limit', 'must be at least 1'],
    ['/web-setup/things/one?limit=x', 'limit', 'must be a number'],
    ['/web-setup/things/one?limit=1&limit=2', 'limit', 'is given more than once'],
    ['/web-setup/things/one?__proto__=1', null, null],
    [`/web-setup/things/${'x'.repeat(21)}`, 'thingId', 'must have at most 20 characters'],
    ['/web-setup/things/%E0%A4%A', 'path', 'has a % that is not a percent-encoding of UTF-8'],
    ['/web-setup/things/%ff', 'path', 'has a % that is not a percent-encoding of UTF-8'],
  ])('%s', async (path, field, message) => {
    const { status, body } = await get(path);
    expect(status).toBe(field === null ? 200 : 400);
    if (field !== null) {
      expect(body).toMatchObject({ error: { code: 'VALIDATION_ERROR', details: [{ field, message }] } });
    }
  });

  it.each(['201', '99999999999999999999'])(
    'reduce a limit of %s to the maximum, with a warning',
    async (limit) => {
      expect((await get(`/web-setup/things/one?limit=${limit}&limti=1`)).body).toMatchObject({
        data: {
          limit: 200,
          warnings: [`limit ${limit} is above the maximum: 200 was used`, expect.stringContaining('"limti"')],
        },
      });
    },
  );

  it('are decoded in the path', async () => {
    expect((await get('/web-setup/things/a%2Fb%20%C3%A4')).body).toMatchObject({
      data: { thingId: 'a/b ä' },
    });
  });
});

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { accountRoutes } from '../../src/http/api/accounts/account.ts';
import type { Route } from '../../src/http/route.ts';
import { type Api, jsonOf, startApi } from './harness.ts';

let api: Api;
beforeEach(async () => {
  // The routes need the accounts of the listener that serves them.
  const late: Route[] = accountRoutes({
    accounts: {
      ...({} as Api['accounts']),
      get: (id) => api.accounts.get(id),
      update: (id, changes) => api.accounts.update(id, changes),
    },
    limitsOf: () => [
      { limit: 'storedBytes', value: 1000, isDefault: true, used: 25 },
      { limit: 'concurrentRequests', value: 64, isDefault: true, used: null },
    ],
  });
  api = await startApi({ routes: late });
});
afterEach(() => api.stop());

const url = () => `${api.base}/web-setup/account`;
const ADDRESS = { line1: '1 Main St', city: 'Springfield', postalCode: '62701', country: 'US' };

async function put(body: unknown) {
  const response = await fetch(url(), {
    method: 'PUT',
    headers: { ...api.as('setup'), 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: await jsonOf(response) };
}

describe('GET /web-setup/account', () => {
  it('returns the account of the key', async () => {
    const response = await fetch(url(), { headers: api.as('setup') });
    expect(await response.json()).toEqual({
      success: true,
      data: {
        accountId: api.account.accountId,
        name: 'Test',
        // Strings that are not set are left out.
        companyAddress: null,
        createdAt: '2026-01-31T12:00:00.000Z',
        updatedAt: '2026-01-31T12:00:00.000Z',
        limits: expect.objectContaining({ storedBytes: 1000, concurrentRequests: 64, contacts: null }),
        usage: expect.objectContaining({ storedBytes: 25, contacts: 0 }),
      },
    });
  });

  it('requires a key with scope setup', async () => {
    expect((await fetch(url(), { headers: api.as('marketing') })).status).toBe(403);
  });
});

describe('PUT /web-setup/account', () => {
  it('replaces the given fields and no others', async () => {
    await put({ companyName: 'Shop Ltd.', companyAddress: { ...ADDRESS, line2: 'Suite 5' } });
    const { status, body } = await put({ companyAddress: ADDRESS, logoUrl: 'https://shop.example/logo.png' });
    expect(status).toBe(200);
    expect(body).toMatchObject({
      data: {
        name: 'Test',
        companyName: 'Shop Ltd.',
        companyAddress: ADDRESS,
        logoUrl: 'https://shop.example/logo.png',
      },
    });
    expect((body['data'] as Record<string, Record<string, unknown>>)['companyAddress']).not.toHaveProperty(
      'line2',
    );
  });

  it('clears a field with null', async () => {
    await put({ companyName: 'Shop Ltd.', companyAddress: ADDRESS, abuseEmail: 'abuse@shop.example' });
    const { body } = await put({ companyAddress: null, abuseEmail: null });
    expect(body).toMatchObject({ data: { companyName: 'Shop Ltd.', companyAddress: null } });
    expect(body.data).not.toHaveProperty('abuseEmail');
  });

  it.each<[string, unknown, string, string]>([
    ['a blank name', { name: ' ' }, 'name', 'must not be empty'],
    ['no name', { name: null }, 'name', 'must be a string'],
    ['two lines', { companyName: 'a\nb' }, 'companyName', 'must be one line without control characters'],
    ['a NUL', { companyName: 'a\u0000b' }, 'companyName', 'must be one line without control characters'],
    ['an address that is a string', { companyAddress: '1 Main St' }, 'companyAddress', 'must be an object'],
    [
      'an address without a city',
      { companyAddress: { ...ADDRESS, city: undefined } },
      'companyAddress.city',
      'is required',
    ],
    [
      'an address without a country',
      { companyAddress: { ...ADDRESS, country: '' } },
      'companyAddress.country',
      'must not be empty',
    ],
    [
      'a postal code that is a number',
      { companyAddress: { ...ADDRESS, postalCode: 62701 } },
      'companyAddress.postalCode',
      'must be a string',
    ],
    ['an invalid email address', { abuseEmail: 'abuse' }, 'abuseEmail', 'must be an email address'],
    [
      'a logo that is a script',
      { logoUrl: 'javascript:alert(1)' },
      'logoUrl',
      'must be an http or https address',
    ],
  ])('refuses %s', async (_, sent, field, message) => {
    const { status, body } = await put(sent);
    expect(status).toBe(400);
    expect(body).toMatchObject({ error: { code: 'VALIDATION_ERROR', details: [{ field, message }] } });
  });

  it('warns of unknown fields', async () => {
    const { body } = await put({ companyAdress: ADDRESS });
    expect(body).toMatchObject({
      data: { warnings: ['unknown field "companyAdress" was ignored; did you mean "companyAddress"?'] },
    });
  });
});

import { describe, expect, it } from 'vitest';
import { granted } from '../support/refusal.ts';
import { startEndpoint } from '../support/webhook-endpoint.ts';
import { startWebhooks } from './setup.ts';

/* Headers that an account adds to the calls of a webhook. */

const HEADERS = { Authorization: 'Bearer s3cret', 'X-Tenant': 'Shop 7', Cookie: 'gate=1' };

async function start() {
  const env = await startWebhooks();
  const endpoint = await startEndpoint();
  const create = (headers: Record<string, string> | null) =>
    env.webhooks.create('acct_one', { url: endpoint.url, events: '*', headers });
  return { ...env, endpoint, create };
}

describe('the headers of a webhook', () => {
  it('are sent with each call and each test, next to the signature', async () => {
    const { create, sent, sendDue, endpoint, webhooks } = await start();
    const { webhookId } = granted(await create(HEADERS));
    await sent();
    await sendDue();
    await webhooks.test('acct_one', webhookId, undefined, new AbortController().signal);
    expect(endpoint.received).toHaveLength(2);
    for (const { headers } of endpoint.received)
      expect(headers).toMatchObject({
        authorization: 'Bearer s3cret',
        'x-tenant': 'Shop 7',
        cookie: 'gate=1',
        'content-type': 'application/json',
        'webhook-id': expect.stringMatching(/^evt_/),
        'webhook-signature': expect.stringMatching(/^v1,/),
      });
  });

  it('are encrypted, and only their names are returned', async () => {
    const { create, tables, webhooks, logged } = await start();
    const created = granted(await create(HEADERS));
    expect(created.headerNames).toEqual(Object.keys(HEADERS));
    const shown = [created, webhooks.list('acct_one'), tables.webhooks.list('acct_one'), logged];
    for (const value of ['s3cret', 'Shop 7']) expect(JSON.stringify(shown)).not.toContain(value);
  });

  it('are replaced together, and kept by other changes', async () => {
    const { create, webhooks, sent, sendDue, endpoint } = await start();
    const { webhookId } = granted(await create(HEADERS));
    const update = async (patch: object) =>
      granted(await webhooks.update('acct_one', webhookId, patch)).headerNames;
    expect(await update({ name: 'X' })).toEqual(Object.keys(HEADERS));
    expect(await update({ headers: { 'x-tenant': 'Shop 8' } })).toEqual(['x-tenant']);
    await sent();
    await sendDue();
    expect(endpoint.received[0]?.headers).toMatchObject({ 'x-tenant': 'Shop 8' });
    expect(endpoint.received[0]?.headers['authorization']).toBeUndefined();
    expect(await update({ headers: null })).toBeUndefined();
    expect(await update({ headers: {} })).toBeUndefined();
  });

  it.each<[string, Record<string, string>]>([
    ['Host', { Host: 'a.example' }],
    ['content-type', { 'content-type': 'text/plain' }],
    ['Content-Length', { 'Content-Length': '1' }],
    ['Transfer-Encoding', { 'Transfer-Encoding': 'chunked' }],
    ['Connection', { Connection: 'close' }],
    ['User-Agent', { 'User-Agent': 'Other' }],
    ['Webhook-Signature', { 'Webhook-Signature': 'v1,x' }],
    ['X A', { 'X A': '1' }],
    ['', { '': '1' }],
    ['__proto__', JSON.parse('{"__proto__":"1"}')],
    ['X-A', { 'X-A': 'a\r\nX-B: 1' }],
    ['X-A', { 'X-A': 'é' }],
    ['X-A', { 'X-A': ' a' }],
    ['X-A', { 'X-A': '' }],
    ['X-A', { 'X-A': 'a'.repeat(1001) }],
    ['x-a', { 'X-A': '1', 'x-a': '2' }],
  ])('cannot include %j', async (name, headers) => {
    const { create, webhooks } = await start();
    const refusal = { code: 'VALIDATION_ERROR', extras: { details: [{ field: `headers.${name}` }] } };
    expect(await create(headers)).toMatchObject(refusal);
    expect(webhooks.list('acct_one')).toEqual([]);
    const { webhookId } = granted(await create(HEADERS));
    expect(await webhooks.update('acct_one', webhookId, { headers })).toMatchObject(refusal);
    expect(granted(webhooks.get('acct_one', webhookId)).headerNames).toEqual(Object.keys(HEADERS));
  });

  it('are at most ten of 1,000 characters', async () => {
    const { create } = await start();
    const headers = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`X-${index}`, 'a'.repeat(1000)]));
    expect(granted(await create(headers(10))).headerNames).toHaveLength(10);
    expect(await create(headers(11))).toMatchObject({ extras: { details: [{ field: 'headers' }] } });
  });
});

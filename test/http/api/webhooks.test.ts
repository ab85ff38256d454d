import { describe, expect, it, onTestFinished } from 'vitest';
import { webhookDeliveryRoutes } from '../../../src/http/api/webhook-deliveries.ts';
import { webhookRoutes } from '../../../src/http/api/webhooks.ts';
import { insertAccount } from '../../support/store.ts';
import { startEndpoint } from '../../support/webhook-endpoint.ts';
import { startWebhooks } from '../../webhooks/setup.ts';
import { startApi } from '../harness.ts';

/** The API with the webhooks module. */
async function start() {
  const setup = await startWebhooks();
  const deps = { webhooks: setup.webhooks };
  const api = await startApi({
    routes: [...webhookRoutes(deps), ...webhookDeliveryRoutes(deps)],
    limits: { setupBytes: 10_000 },
  });
  onTestFinished(() => api.stop());
  const { accountId } = api.account;
  insertAccount(setup.tables, accountId, setup.clock.now());

  async function call(method: string, path: string, body?: object) {
    const response = await fetch(`${api.base}/web-setup/webhooks${path}`, {
      method,
      headers: { ...api.as('setup'), ...(body === undefined ? {} : { 'Content-Type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const json = (await response.json()) as Answered;
    const { code, message } = json.error ?? {};
    return { status: response.status, data: json.data, code, message, fields: fieldsOf(json) };
  }
  return { setup, accountId, call };
}

interface Answered {
  data: {
    webhookId: string;
    secret: string;
    webhooks: object[];
    deliveries: { deliveryId: string }[];
    nextKey?: string;
    warnings?: string[];
  };
  error?: { code: string; message: string; details?: { field: string }[] };
}

function fieldsOf({ error }: Answered): string[] {
  return error?.details?.map(({ field }) => field) ?? [];
}

const INPUT = { url: 'https://shop.example/hooks', events: ['email_sent', 'email_delivered'] };

describe('POST /web-setup/webhooks', () => {
  it('responds with 201, the webhook and its secret', async () => {
    const { setup, call } = await start();
    expect(await call('POST', '', INPUT)).toMatchObject({
      status: 201,
      data: {
        webhookId: expect.stringMatching(/^webhook_\d{13}_[0-9a-z]{12}$/),
        name: 'shop.example',
        ...INPUT,
        isActive: true,
        secret: expect.stringMatching(/^whsec_/),
        createdAt: setup.clock.now(),
        updatedAt: setup.clock.now(),
      },
    });
  });

  it.each([
    ['all events', { events: '*' }, { events: ['*'] }],
    ['one event as a string', { events: 'email_sent' }, { events: ['email_sent'] }],
    ['a name', { name: 'Shop' }, { name: 'Shop' }],
    ['a description, which is its name then', { description: 'Of the shop' }, { name: 'Of the shop' }],
    ['an empty description', { description: '' }, { name: 'shop.example' }],
    ['a disabled webhook', { isActive: false }, { isActive: false }],
  ])('accepts %s', async (_, input, made) => {
    const { call } = await start();
    expect(await call('POST', '', { ...INPUT, ...input })).toMatchObject({ status: 201, data: made });
  });

  it.each([
    ['no url', { url: undefined }, 'url'],
    ['an invalid url', { url: 'shop.example' }, 'url'],
    ['a url with a password', { url: 'https://a:b@shop.example/' }, 'url'],
    ['a url of the metadata service', { url: 'http://169.254.169.254/' }, 'url'],
    ['a long url', { url: `https://shop.example/${'x'.repeat(2048)}` }, 'url'],
    ['no events', { events: undefined }, 'events'],
    ['an empty list of events', { events: [] }, 'events'],
    ['an unknown event', { events: ['email_sent', 'email_read'] }, 'events[1]'],
    ['a number of events', { events: 7 }, 'events'],
    ['more events than there are', { events: Array.from({ length: 100 }, () => 1) }, 'events'],
    ['an empty name', { name: ' ' }, 'name'],
    ['an invalid isActive', { isActive: 'yes' }, 'isActive'],
  ])('refuses %s', async (_, input, field) => {
    const { call } = await start();
    expect(await call('POST', '', { ...INPUT, ...input })).toMatchObject({
      status: 400,
      code: 'VALIDATION_ERROR',
      fields: [field],
    });
  });

  it('warns of unknown fields', async () => {
    const { call } = await start();
    const { status, data } = await call('POST', '', { ...INPUT, secret: 'mine' });
    expect(status).toBe(201);
    expect(data.warnings).toEqual([expect.stringContaining('secret')]);
    expect(data.secret).not.toBe('mine');
  });
});

describe('GET /web-setup/webhooks', () => {
  it('has the six fields of each active webhook of the account', async () => {
    const { setup, call } = await start();
    const { data } = await call('POST', '', { ...INPUT, description: 'Of the shop' });
    await call('POST', '', { ...INPUT, isActive: false });
    await setup.hook('https://other.example/');
    const listed = {
      webhookId: data.webhookId,
      name: 'Of the shop',
      ...INPUT,
      isActive: true,
      createdAt: setup.clock.now(),
    };
    expect(await call('GET', '')).toMatchObject({ status: 200, data: { webhooks: [listed], count: 1 } });
    expect((await call('GET', '')).data.webhooks[0]).toEqual(listed);
    expect(await call('GET', '?includeInactive=true')).toMatchObject({ data: { count: 2 } });
    expect(await call('GET', '?includeInactive=maybe')).toMatchObject({ status: 400 });
  });
});

describe('/web-setup/webhooks/{webhookId}', () => {
  it('is read, updated by PUT and PATCH, and deleted', async () => {
    const { setup, call } = await start();
    const { data: made } = await call('POST', '', INPUT);
    const path = `/${made.webhookId}`;
    expect((await call('GET', path)).data).toEqual(made);
    setup.clock.advance(5);
    const changed = { ...made, updatedAt: setup.clock.now() };
    expect((await call('PUT', path, { events: '*' })).data).toEqual({ ...changed, events: ['*'] });
    expect((await call('PATCH', path, { name: 'Shop' })).data).toEqual({
      ...changed,
      events: ['*'],
      name: 'Shop',
    });
    expect(await call('PATCH', path, { url: 'nonsense' })).toMatchObject({ status: 400, fields: ['url'] });
    expect((await call('DELETE', path)).data).toEqual({
      message: expect.any(String),
      webhookId: made.webhookId,
    });
    for (const method of ['GET', 'DELETE'])
      expect(await call(method, path)).toMatchObject({ status: 404, code: 'WEBHOOK_NOT_FOUND' });
  });

  it('rotates the secret', async () => {
    const { call } = await start();
    const { data: made } = await call('POST', '', INPUT);
    const { status, data } = await call('POST', `/${made.webhookId}/rotate-secret`);
    expect(status).toBe(200);
    expect(data).toEqual({ ...made, secret: expect.stringMatching(/^whsec_/) });
    expect(data.secret).not.toBe(made.secret);
    expect((await call('GET', `/${made.webhookId}`)).data).toEqual(data);
  });

  it('sends a test event, with and without a body', async () => {
    const { call } = await start();
    const endpoint = await startEndpoint(() => ({ status: 404, body: 'who?' }));
    const { data: made } = await call('POST', '', { ...INPUT, url: endpoint.url });
    expect(await call('POST', `/${made.webhookId}/test`)).toMatchObject({
      status: 200,
      data: { delivered: false, responseCode: 404, responseBody: 'who?', payload: { type: 'email_sent' } },
    });
    endpoint.answer(204);
    expect(await call('POST', `/${made.webhookId}/test`, { event: 'domain_failed' })).toMatchObject({
      status: 200,
      data: { delivered: true, responseCode: 204, payload: { type: 'domain_failed', livemode: false } },
    });
    expect(await call('POST', `/${made.webhookId}/test`, { event: 'mail' })).toMatchObject({ status: 400 });
  });
});

describe('deliveries', () => {
  it('are paged, retried and replayed', async () => {
    const { setup, accountId, call } = await start();
    const endpoint = await startEndpoint(500);
    const { data: made } = await call('POST', '', { ...INPUT, url: endpoint.url });
    const path = `/${made.webhookId}`;
    for (let n = 0; n < 3; n++) await setup.sent({ account_id: accountId });
    await setup.sendDue();

    const first = await call('GET', `${path}/deliveries?status=pending&limit=2`);
    expect(first.data).toMatchObject({ count: 2, nextKey: expect.any(String) });
    const second = await call(
      'GET',
      `${path}/deliveries?status=pending&limit=2&lastKey=${first.data.nextKey}`,
    );
    expect(second.data).toMatchObject({ count: 1 });
    expect(second.data).not.toHaveProperty('nextKey');
    expect(await call('GET', `${path}/deliveries?lastKey=nonsense`)).toMatchObject({ status: 400 });
    expect(await call('GET', `${path}/deliveries?status=lost`)).toMatchObject({ status: 400 });
    const [delivery] = second.data.deliveries;
    expect(delivery).toMatchObject({
      status: 'pending',
      attempts: 1,
      responseCode: 500,
      event: 'email_sent',
    });

    endpoint.answer(200);
    expect(await call('GET', `${path}/deliveries/${delivery?.deliveryId}`)).toMatchObject({
      status: 200,
      data: { ...delivery, payload: { type: 'email_sent', data: { object: { event: 'email_sent' } } } },
    });
    expect(await call('GET', `${path}/deliveries/whd_1_2`)).toMatchObject({ status: 404 });
    const again = await call('POST', `${path}/deliveries/${delivery?.deliveryId}/retry`);
    expect(again).toMatchObject({ status: 200, data: { status: 'pending' } });
    await setup.sendDue();
    expect(endpoint.taken()).toHaveLength(1);
    expect(await call('POST', `${path}/deliveries/whd_1_2/retry`)).toMatchObject({
      status: 404,
      code: 'NOT_FOUND',
    });

    const range = { from: '2026-01-01T00:00:00Z', to: '2027-01-01T00:00:00+01:00' };
    expect(await call('POST', `${path}/replay`, range)).toMatchObject({ status: 200, data: { replayed: 2 } });
    await setup.sendDue();
    expect(endpoint.taken()).toHaveLength(3);
    expect(await call('POST', `${path}/replay`, { ...range, which: 'all' })).toMatchObject({
      data: { replayed: 3 },
    });
    expect(await call('POST', `${path}/replay`, { from: range.to, to: range.from })).toMatchObject({
      status: 400,
      fields: ['to'],
    });
    expect(await call('POST', `${path}/replay`, { from: 'once', to: range.to })).toMatchObject({
      status: 400,
      fields: ['from'],
      message: expect.stringContaining('from: must be an ISO 8601 time'),
    });
    expect(await call('POST', `${path}/replay`, { from: range.from })).toMatchObject({
      status: 400,
      fields: ['to'],
      message: expect.stringContaining('to: is required'),
    });
  });
});

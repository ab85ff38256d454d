import { describe, expect, it } from 'vitest';
import { DAY, HOUR, iso, MINUTE } from '../../src/core/clock.ts';
import type { Refusal } from '../../src/core/refusal.ts';
import { eventually } from '../support/eventually.ts';
import { granted } from '../support/refusal.ts';
import { startEndpoint } from '../support/webhook-endpoint.ts';
import { NO_RESPONSE, startWebhooks, type WebhookEnv } from './setup.ts';

const URL_ = 'https://receiver.example/hooks';
const ALL = { beforeSeq: null, limit: 1000 };

function code(result: object | Refusal): unknown {
  return 'code' in result ? result.code : 'granted';
}

describe('creating a webhook', () => {
  it('returns an id, a secret and a name', async () => {
    const { webhooks, clock } = await startWebhooks();
    const created = granted(await webhooks.create('acct_one', { url: URL_, events: ['email_sent'] }));
    expect(created).toEqual({
      webhookId: expect.stringMatching(/^webhook_\d+_[0-9a-z]{12}$/),
      name: 'receiver.example',
      url: URL_,
      events: ['email_sent'],
      isActive: true,
      secret: expect.stringMatching(/^whsec_[0-9A-Za-z+/]{43}=$/),
      createdAt: clock.now(),
      updatedAt: clock.now(),
    });
    expect(webhooks.get('acct_one', created.webhookId)).toEqual(created);
  });

  it('is refused above the limit of the account', async () => {
    const { webhooks } = await startWebhooks({ limits: { webhooks: 2 } });
    const make = (accountId: string) => webhooks.create(accountId, { url: URL_, events: '*' });
    for (let n = 0; n < 2; n++) granted(await make('acct_one'));
    expect(await make('acct_one')).toMatchObject({
      code: 'LIMIT_REACHED',
      message: 'This account has reached its limit of 2 webhooks',
      extras: { details: [{ name: 'webhooks' }] },
    });
    expect(code(await make('acct_two'))).toBe('granted');
  });

  it('stores the secret sealed', async () => {
    const { webhooks, db } = await startWebhooks();
    const { secret } = granted(await webhooks.create('acct_one', { url: URL_, events: '*' }));
    const stored = db.prepare('SELECT secret FROM webhook_secrets').pluck().get() as Buffer;
    const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
    expect(key).toHaveLength(32);
    expect(stored.includes(key)).toBe(false);
  });
});

describe('updating a webhook', () => {
  it('changes only the given fields', async () => {
    const { webhooks, clock } = await startWebhooks();
    const created = granted(
      await webhooks.create('acct_one', { url: URL_, events: '*', description: 'Of the shop' }),
    );
    clock.advance(MINUTE);
    const { webhookId } = created;
    const update = async (patch: object) => granted(await webhooks.update('acct_one', webhookId, patch));
    expect(await update({})).toEqual({ ...created, updatedAt: clock.now() });
    expect(await update({ events: ['email_opened'], name: 'Shop', description: null })).toEqual({
      webhookId,
      name: 'Shop',
      url: URL_,
      events: ['email_opened'],
      isActive: true,
      secret: created.secret,
      createdAt: created.createdAt,
      updatedAt: clock.now(),
    });
    expect(code(await webhooks.update('acct_one', webhookId, { url: 'nonsense' }))).toBe('VALIDATION_ERROR');
    expect(code(await webhooks.update('acct_one', webhookId, { events: [] }))).toBe('VALIDATION_ERROR');
    expect(granted(webhooks.get('acct_one', webhookId))).toMatchObject({ url: URL_ });
  });

  it('clears the reason when it is enabled', async () => {
    const env = await startWebhooks();
    const endpoint = await startEndpoint(410);
    const { webhookId } = await env.hook(endpoint.url);
    await env.sent();
    await env.sendDue();
    expect(granted(env.webhooks.get('acct_one', webhookId))).toMatchObject({
      isActive: false,
      offReason: 'gone',
      failingSince: expect.any(String),
    });
    const named = granted(await env.webhooks.update('acct_one', webhookId, { name: 'Other' }));
    expect(named).toMatchObject({ isActive: false, offReason: 'gone' });
    const on = granted(await env.webhooks.update('acct_one', webhookId, { isActive: true }));
    expect(on).toMatchObject({ isActive: true });
    expect(on).not.toHaveProperty('offReason');
    expect(on).not.toHaveProperty('failingSince');
  });
});

describe('the list', () => {
  it('contains disabled webhooks on request only', async () => {
    const { webhooks } = await startWebhooks();
    const one = granted(await webhooks.create('acct_one', { url: URL_, events: '*' }));
    const two = granted(await webhooks.create('acct_one', { url: URL_, events: '*', isActive: false }));
    granted(await webhooks.create('acct_two', { url: URL_, events: '*' }));
    const ids = (options?: { includeInactive: boolean }) =>
      webhooks.list('acct_one', options).map(({ webhookId }) => webhookId);
    expect(ids()).toEqual([one.webhookId]);
    expect(ids({ includeInactive: true })).toEqual([one.webhookId, two.webhookId]);
  });
});

describe('another account', () => {
  it('finds nothing by any operation', async () => {
    const env = await startWebhooks();
    const endpoint = await startEndpoint();
    const { webhookId } = await env.hook(endpoint.url);
    await env.sent();
    await env.sendDue();
    const [delivery] = granted(await env.webhooks.deliveries('acct_one', webhookId, ALL)).deliveries;
    const deliveryId = delivery?.deliveryId ?? '';
    const { webhooks } = env;
    const signal = new AbortController().signal;
    const range = { from: 0, to: env.clock.now() + 1, which: 'all' } as const;
    const callAll = async (accountId: string, id: string) => [
      webhooks.get(accountId, id),
      await webhooks.update(accountId, id, { name: 'Mine' }),
      await webhooks.rotateSecret(accountId, id),
      await webhooks.test(accountId, id, undefined, signal),
      await webhooks.deliveries(accountId, id, ALL),
      await webhooks.retry(accountId, id, deliveryId),
      await webhooks.replay(accountId, id, range),
      await webhooks.remove(accountId, id),
    ];
    const own = await env.hook(endpoint.url, 'acct_two');
    for (const answer of await callAll('acct_two', webhookId)) {
      expect(code(answer)).toBe('WEBHOOK_NOT_FOUND');
    }
    const unknown = await callAll('acct_two', 'webhook_1_000000000000');
    expect(unknown.map(code)).toEqual(unknown.map(() => 'WEBHOOK_NOT_FOUND'));
    // Nor deliveries and events of another account through a webhook of the caller.
    expect(code(await webhooks.retry('acct_two', own.webhookId, deliveryId))).toBe('NOT_FOUND');
    expect(granted(await webhooks.replay('acct_two', own.webhookId, range))).toMatchObject({ replayed: 0 });
    expect(endpoint.received).toHaveLength(1);
  });
});

describe('a rotation', () => {
  it('is limited to five a day', async () => {
    const { webhooks, hook, clock } = await startWebhooks();
    const { webhookId } = await hook(URL_);
    for (let n = 0; n < 5; n++) {
      granted(await webhooks.rotateSecret('acct_one', webhookId));
      clock.advance(HOUR);
    }
    const refused = await webhooks.rotateSecret('acct_one', webhookId);
    expect(refused).toMatchObject({ code: 'RATE_LIMITED', extras: { retryAfter: 19 * 3600 } });
    clock.advance(19 * HOUR);
    granted(await webhooks.rotateSecret('acct_one', webhookId));
  });
});

describe('a test', () => {
  it('sends a sample event and returns the result', async () => {
    const env = await startWebhooks();
    const endpoint = await startEndpoint(() => ({ status: 200, body: 'ok' }));
    const { webhookId } = await env.hook(endpoint.url);
    const test = (kind?: 'email_bounced' | 'domain_failed') =>
      env.webhooks.test('acct_one', webhookId, kind, new AbortController().signal);
    const result = granted(await test());
    expect(result).toMatchObject({ webhookId, delivered: true, responseCode: 200, responseBody: 'ok' });
    expect(endpoint.received[0]?.json).toEqual(result.payload);
    expect(result.payload).toMatchObject({
      type: 'email_delivered',
      livemode: false,
      data: { object: { event: 'email_delivered', to: ['recipient@example.com'] } },
    });
    const object = { bounceType: 'hard' };
    expect(granted(await test('email_bounced')).payload).toMatchObject({ data: { object } });
    expect(granted(await test('domain_failed')).payload).not.toHaveProperty('data.object.messageId');
    endpoint.answer(500);
    expect(granted(await test())).toMatchObject({ delivered: false, responseCode: 500 });
    expect(granted(await env.webhooks.deliveries('acct_one', webhookId, ALL)).deliveries).toEqual([]);
  });

  it('works for a disabled webhook, one at a time', async () => {
    const env = await startWebhooks();
    let release = () => {};
    const endpoint = await startEndpoint(
      () =>
        new Promise((resolve) => {
          release = () => resolve(200);
        }),
    );
    const { webhookId } = await env.hook(endpoint.url);
    granted(await env.webhooks.update('acct_one', webhookId, { isActive: false }));
    const test = () => env.webhooks.test('acct_one', webhookId, undefined, new AbortController().signal);
    const first = test();
    expect(code(await test())).toBe('RATE_LIMITED');
    await eventually('the call to arrive', () => endpoint.received.length > 0, { everyMs: 5 });
    release();
    expect(granted(await first)).toMatchObject({ delivered: true });
    endpoint.answer(200);
    expect(granted(await test())).toMatchObject({ delivered: true });
  });
});

describe('a retry', () => {
  async function failed(env: WebhookEnv) {
    const endpoint = await startEndpoint(410);
    const { webhookId } = await env.hook(endpoint.url);
    await env.sent();
    await env.sendDue();
    granted(await env.webhooks.update('acct_one', webhookId, { isActive: true }));
    endpoint.answer(200);
    const [delivery] = granted(await env.webhooks.deliveries('acct_one', webhookId, ALL)).deliveries;
    return { endpoint, webhookId, deliveryId: delivery?.deliveryId ?? '' };
  }

  it('repeats failed and succeeded deliveries', async () => {
    const env = await startWebhooks();
    const { endpoint, webhookId, deliveryId } = await failed(env);
    const retry = async () => granted(await env.webhooks.retry('acct_one', webhookId, deliveryId));
    expect(await retry()).toMatchObject({ deliveryId, status: 'pending', attempts: 1 });
    await env.sendDue();
    await retry();
    await env.sendDue();
    expect(endpoint.received).toHaveLength(3);
    expect(new Set(endpoint.received.map(({ json }) => json.id)).size).toBe(1);
    expect(granted(await env.webhooks.deliveries('acct_one', webhookId, ALL)).deliveries).toMatchObject([
      { deliveryId, status: 'succeeded', attempts: 3 },
    ]);
  });

  it('is refused for a disabled webhook, an unknown delivery and a deleted event', async () => {
    const env = await startWebhooks();
    const { webhookId, deliveryId } = await failed(env);
    const retry = async (id: string) => code(await env.webhooks.retry('acct_one', webhookId, id));
    expect(await retry('whd_1_000000000000')).toBe('NOT_FOUND');
    granted(await env.webhooks.update('acct_one', webhookId, { isActive: false }));
    expect(await retry(deliveryId)).toBe('INVALID_STATE');
    granted(await env.webhooks.update('acct_one', webhookId, { isActive: true }));
    env.tables.retention.events.purge({
      from: 0,
      before: env.clock.now() + 1,
      now: env.clock.now(),
      rows: 10,
    });
    expect(await retry(deliveryId)).toBe('INVALID_STATE');
  });
});

describe('a replay', () => {
  /** Ten events, one an hour: 2 and 3 fail, 6 to 8 happen while the webhook is disabled, the others succeed. */
  async function history() {
    const env = await startWebhooks();
    const endpoint = await startEndpoint();
    const { webhookId } = await env.hook(endpoint.url);
    const start = env.clock.now();
    const update = async (patch: object) => granted(await env.webhooks.update('acct_one', webhookId, patch));
    const events: string[] = [];
    for (let hour = 0; hour < 10; hour++) {
      if (hour === 2) endpoint.answer(410);
      if (hour === 3 || hour === 4) await update({ isActive: true });
      if (hour === 4) endpoint.answer(200);
      if (hour === 6) await update({ isActive: false });
      if (hour === 9) await update({ isActive: true });
      const { seq } = await env.sent();
      await env.sendDue();
      events.push(env.tables.events.ofMessage(seq)[0]?.event_id ?? '');
      env.clock.advance(HOUR);
    }
    const before = endpoint.received.length;
    const replay = async (from: number, to: number, which: 'undelivered' | 'all' = 'undelivered') => {
      const range = { from: start + from * HOUR, to: start + to * HOUR, which };
      const result = granted(await env.webhooks.replay('acct_one', webhookId, range));
      await env.sendDue();
      return result;
    };
    return {
      env,
      webhookId,
      update,
      replay,
      /** Hours whose events were received since. */
      receivedHours: () =>
        endpoint.received
          .slice(before)
          .map(({ json }) => events.indexOf(json.id))
          .sort((a, b) => a - b),
    };
  }

  it('sends events that failed or happened while it was disabled', async () => {
    const { replay, receivedHours } = await history();
    expect(await replay(0, 10)).toEqual({ replayed: 5, nextFrom: null });
    expect(receivedHours()).toEqual([2, 3, 6, 7, 8]);
    expect(await replay(0, 10)).toEqual({ replayed: 0, nextFrom: null });
  });

  it('is limited to its time range, without the end', async () => {
    const { replay, receivedHours } = await history();
    expect(await replay(3, 7)).toMatchObject({ replayed: 2 });
    expect(receivedHours()).toEqual([3, 6]);
    expect(await replay(-100, 0)).toMatchObject({ replayed: 0 });
    expect(await replay(100, 200)).toMatchObject({ replayed: 0 });
  });

  it('repeats all events on request', async () => {
    const { replay, receivedHours } = await history();
    expect(await replay(0, 10, 'all')).toMatchObject({ replayed: 10 });
    expect(receivedHours()).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });

  it('is limited to the kinds to which the webhook subscribes now', async () => {
    const { replay, update } = await history();
    await update({ events: ['email_opened'] });
    expect(await replay(0, 10, 'all')).toMatchObject({ replayed: 0 });
  });

  it('sends pending deliveries immediately', async () => {
    const env = await startWebhooks();
    const endpoint = await startEndpoint(500);
    const { webhookId } = await env.hook(endpoint.url);
    await env.sent();
    await env.sendDue();
    endpoint.answer(200);
    const range = { from: 0, to: env.clock.now() + DAY, which: 'undelivered' } as const;
    expect(granted(await env.webhooks.replay('acct_one', webhookId, range))).toMatchObject({ replayed: 1 });
    await env.sendDue();
    expect(endpoint.taken()).toHaveLength(1);
  });

  it('is refused for a disabled webhook', async () => {
    const { env, webhookId, update } = await history();
    await update({ isActive: false });
    const range = { from: 0, to: 1, which: 'all' } as const;
    expect(code(await env.webhooks.replay('acct_one', webhookId, range))).toBe('INVALID_STATE');
  });

  it('of more events than one batch misses none', async () => {
    const { writer, ids, clock, webhooks, hook, db } = await startWebhooks({ caller: NO_RESPONSE });
    await writer.run((tx) => {
      for (let n = 0; n < 1234; n++) {
        tx.events.insert({
          event_id: ids.make('evt'),
          account_id: n % 3 === 0 ? 'acct_two' : 'acct_one',
          kind: 'email_sent',
          at: clock.now(),
          message_seq: null,
          domain_id: null,
          data: '{}',
        });
      }
    });
    const { webhookId } = await hook(URL_);
    const range = { from: clock.now(), to: clock.now() + 1, which: 'undelivered' } as const;
    expect(granted(await webhooks.replay('acct_one', webhookId, range))).toEqual({
      replayed: 822,
      nextFrom: null,
    });
    expect(db.prepare("SELECT count(*) FROM webhook_deliveries WHERE state = 'ready'").pluck().get()).toBe(
      822,
    );
  });
});

describe('the deliveries', () => {
  it('are read page by page, newest event first', async () => {
    const env = await startWebhooks();
    const endpoint = await startEndpoint(() => ({ status: 200, body: 'ok' }));
    const { webhookId } = await env.hook(endpoint.url);
    for (let n = 0; n < 5; n++) await env.sent();
    await env.sendDue();
    const page = async (beforeSeq: number | null) =>
      granted(await env.webhooks.deliveries('acct_one', webhookId, { beforeSeq, limit: 2 }));
    const pages = [await page(null)];
    for (let next = pages[0]?.nextSeq ?? null; next !== null; ) {
      const following = await page(next);
      pages.push(following);
      next = following.nextSeq;
    }
    expect(pages.map(({ deliveries }) => deliveries.length)).toEqual([2, 2, 1]);
    const all = pages.flatMap(({ deliveries }) => deliveries);
    expect(all.map(({ eventId }) => eventId)).toEqual(
      granted(await env.webhooks.deliveries('acct_one', webhookId, ALL)).deliveries.map(
        ({ eventId }) => eventId,
      ),
    );
    expect(all[0]).toEqual({
      deliveryId: expect.stringMatching(/^whd_\d+_[0-9a-z]{12}$/),
      eventId: expect.stringMatching(/^evt_/),
      event: 'email_sent',
      status: 'succeeded',
      attempts: 1,
      responseCode: 200,
      responseBody: 'ok',
      lastAttemptAt: iso(env.clock.now()),
      createdAt: iso(env.clock.now()),
    });
    expect(
      granted(await env.webhooks.deliveries('acct_one', webhookId, { ...ALL, status: 'failed' })).deliveries,
    ).toEqual([]);
  });
});

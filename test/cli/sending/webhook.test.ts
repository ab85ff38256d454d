import { appendFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openDatabase } from '../../../src/store/database/database.ts';
import { MAX_SCANNED_ROWS } from '../../../src/store/rows/page.ts';
import { createTables } from '../../../src/store/tables.ts';
import { startEndpoint } from '../../support/webhook-endpoint.ts';
import { createShell } from '../run.ts';

let shell: ReturnType<typeof createShell>;
beforeEach(async () => {
  shell = createShell();
  // Receivers on this machine are refused where there are several accounts.
  appendFileSync(shell.file, '[webhooks]\nallowPrivateNetworks = true\n');
  await shell.run('account', 'create', '--name', 'Shop', '--id', 'shop');
  await shell.run('account', 'create', '--name', 'Other', '--id', 'other');
});
afterEach(() => shell.remove());

const webhook = (...args: string[]) => shell.json('webhook', ...args, '--account', 'shop', '--json');
const create = (url: string, ...args: string[]) => webhook('create', url, ...args);

describe('webhook create, list, show', () => {
  it('creates a webhook and shows its secret', async () => {
    const made = await create('https://shop.example/hooks', '--event', 'email_sent,email_opened');
    expect(made).toMatchObject({
      webhookId: expect.stringMatching(/^webhook_/),
      name: 'shop.example',
      events: ['email_sent', 'email_opened'],
      isActive: true,
      secret: expect.stringMatching(/^whsec_/),
    });
    expect(await webhook('show', made.webhookId)).toEqual(made);
    const { secret, updatedAt: _, ...listed } = made;
    expect(await webhook('list')).toEqual([listed]);
    const text = await shell.run('webhook', 'show', made.webhookId, '--account', 'shop');
    expect(text.out).toContain(secret);
    expect(text.out).toContain('email_sent, email_opened');
  });

  it('disables and enables', async () => {
    const { webhookId } = await create('https://shop.example/hooks');
    expect(await webhook('disable', webhookId)).toMatchObject({ isActive: false });
    expect(await webhook('enable', webhookId)).toMatchObject({ isActive: true });
  });

  it('subscribes to all events by default', async () => {
    expect(await create('https://shop.example/hooks')).toMatchObject({ events: ['*'] });
  });

  it.each([
    ['an invalid URL', ['create', 'shop.example', '--account', 'shop'], 2, 'url'],
    [
      'an unknown event type',
      ['create', 'https://a.example/', '--event', 'mail', '--account', 'shop'],
      2,
      'events',
    ],
    ['no account', ['create', 'https://a.example/'], 2, '--account'],
    ['an unknown account', ['list', '--account', 'nobody'], 1, 'no account'],
    ['an unknown webhook', ['show', 'webhook_1_2', '--account', 'shop'], 1, 'no webhook'],
    [
      'an unknown status',
      ['deliveries', 'webhook_1_2', '--account', 'shop', '--status', 'lost'],
      2,
      'status',
    ],
    ['an invalid time', ['replay', 'webhook_1_2', '--account', 'shop', '--from', 'once'], 2, '--from'],
    [
      'a time without a zone',
      ['replay', 'webhook_1_2', '--account', 'shop', '--from', '2026-02-01T12:00'],
      2,
      '--from must be a date',
    ],
    [
      'a test of an unknown event type',
      ['test', 'webhook_1_2', '--account', 'shop', '--event', 'mail'],
      2,
      'no event type',
    ],
  ])('rejects %s', async (_, args, status, why) => {
    const outcome = await shell.run('webhook', ...args);
    expect(outcome.status).toBe(status);
    expect(outcome.err).toContain(why);
  });

  it('shows nothing of another account', async () => {
    const { webhookId } = await create('https://shop.example/hooks');
    const outcome = await shell.run('webhook', 'show', webhookId, '--account', 'other');
    expect(outcome).toMatchObject({ status: 1, out: '' });
  });
});

describe('webhook update', () => {
  it('sets and removes filter and headers, and never prints the values of headers', async () => {
    const file = join(dirname(shell.file), 'headers');
    writeFileSync(file, 'X-Tenant: shop\n\nAuthorization: Bearer a:b\n');
    const made = await create('https://shop.example/hooks', '--stream', 'marketing', '--headers-file', file);
    const filter = { streams: ['marketing'] };
    const headerNames = ['X-Tenant', 'Authorization'];
    expect(made).toMatchObject({ events: ['*'], filter, headerNames });
    const { webhookId } = made;
    const renamed = await webhook(
      'update',
      webhookId,
      '--name',
      'Shop',
      '--event',
      'email_sent,email_opened',
    );
    const events = ['email_sent', 'email_opened'];
    expect(renamed).toMatchObject({ name: 'Shop', events, filter, headerNames });
    const tagged = await webhook('update', webhookId, '--tag', 'a', 'b');
    expect(tagged).toMatchObject({ filter: { tags: ['a', 'b'] }, headerNames });
    const shown = await shell.run('webhook', 'show', webhookId, '--account', 'shop');
    expect(shown.out).toContain('X-Tenant, Authorization');
    expect(shown.out).not.toContain('Bearer');
    const plain = await webhook('update', webhookId, '--no-filter', '--no-headers');
    expect(plain).not.toHaveProperty('filter');
    expect(plain).not.toHaveProperty('headerNames');
  });

  it.each([
    ['a domain of nobody', ['--domain', 'other.example'], 'filter.domains[0]'],
    ['an invalid URL', ['--url', 'shop.example'], 'url'],
  ])('refuses %s', async (_, args, field) => {
    const { webhookId } = await create('https://shop.example/hooks');
    const refused = await shell.run('webhook', 'update', webhookId, '--account', 'shop', ...args);
    expect(refused).toMatchObject({ status: 2, err: expect.stringContaining(field) });
  });

  it('refuses a line without a value in the file of headers', async () => {
    const file = join(dirname(shell.file), 'headers');
    writeFileSync(file, 'Authorization\n');
    const { webhookId } = await create('https://shop.example/hooks');
    const args = ['webhook', 'update', webhookId, '--account', 'shop', '--headers-file', file];
    expect(await shell.run(...args)).toMatchObject({ err: expect.stringContaining('headers.Authorization') });
  });
});

describe('webhook rotate, delete', () => {
  it('rotate the secret, and delete the webhook', async () => {
    const { webhookId, secret } = await create('https://shop.example/hooks');
    const rotated = await webhook('rotate', webhookId);
    expect(rotated.secret).not.toBe(secret);
    expect(await webhook('show', webhookId)).toEqual(rotated);
    expect(await webhook('delete', webhookId)).toMatchObject({ webhookId });
    expect(await webhook('list')).toEqual([]);
  });
});

describe('webhook test', () => {
  it('calls the endpoint and prints the result', async () => {
    const endpoint = await startEndpoint(() => ({ status: 200, body: 'thanks' }));
    const { webhookId } = await create(endpoint.url);
    expect(await webhook('test', webhookId, '--event', 'email_clicked')).toMatchObject({
      delivered: true,
      responseCode: 200,
      responseBody: 'thanks',
      payload: { type: 'email_clicked', livemode: false },
    });
    expect(endpoint.received).toHaveLength(1);
    endpoint.answer(500);
    const failed = await shell.run('webhook', 'test', webhookId, '--account', 'shop');
    expect(failed.status).toBe(1);
    expect(failed.out).toContain('500');
  });
});

describe('webhook deliveries, retry, replay', () => {
  it('find nothing without deliveries', async () => {
    const { webhookId } = await create('https://shop.example/hooks');
    expect(await webhook('deliveries', webhookId)).toEqual([]);
    expect(await webhook('replay', webhookId, '--from', '2026-01-01')).toEqual({ webhookId, replayed: 0 });
    const retried = await shell.run('webhook', 'retry', webhookId, 'whd_1_2', '--account', 'shop');
    expect(retried).toMatchObject({ status: 1, err: expect.stringContaining('no delivery') });
  });

  it('find a rare status behind more rows than a page examines', async () => {
    const { webhookId } = await create('https://shop.example/hooks');
    const db = openDatabase(join(dirname(shell.file), 'data'));
    const { events, webhooks, webhookDeliveries } = createTables(db);
    const webhookNumber = webhooks.get('shop', webhookId)?.number ?? 0;
    db.transaction(() => {
      for (let n = 0; n <= MAX_SCANNED_ROWS; n++) {
        const eventSeq = events.insert({
          event_id: `evt_1_${String(n).padStart(12, '0')}`,
          account_id: 'shop',
          kind: 'domain_verified',
          at: n,
          message_seq: null,
          domain_id: null,
          data: '{}',
        });
        const deliveryId = `whd_1_${String(n).padStart(12, '0')}`;
        webhookDeliveries.insert({ webhook: webhookNumber, eventSeq, deliveryId, at: n });
        const row = webhookDeliveries.get(webhookNumber, eventSeq);
        if (row === null) throw new Error(`There is no delivery of event ${eventSeq}`);
        webhookDeliveries.record({ ...row, state: n < 2 ? 'succeeded' : 'failed' });
      }
    })();
    db.close();
    const list = (...args: string[]) => webhook('deliveries', webhookId, '--status', 'succeeded', ...args);
    expect(await list()).toMatchObject([
      { deliveryId: 'whd_1_000000000001' },
      { deliveryId: 'whd_1_000000000000' },
    ]);
    expect(await list('--limit', '1')).toMatchObject([{ deliveryId: 'whd_1_000000000001' }]);
  });
});

import { Webhook } from 'standardwebhooks';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Shop, startShop } from '../../../src/cli/demo/world/shop.ts';

/** The demo shows a receiver of webhooks to copy from: it must be right about whom it believes. */
const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const OTHER = `whsec_${Buffer.alloc(32, 8).toString('base64')}`;
const MINUTE = 60_000;

let shop: Shop;
beforeEach(async () => {
  shop = await startShop();
});
afterEach(() => shop.close());

interface Wish {
  id?: string;
  type?: string;
  secret?: string;
  at?: Date;
  /** What is sent instead of what was signed. */
  body?: string;
  headers?: Record<string, string>;
}

const payload = (type: string, id: string) =>
  JSON.stringify({ id, type, data: { object: { recipient: 'zoe@inbox.test' } } });

/** Signed by an independent library; returns the status. */
async function call(wish: Wish = {}): Promise<number> {
  const { id = 'evt_1', type = 'email_sent', secret = SECRET, at = new Date() } = wish;
  const signed = payload(type, id);
  const headers = {
    'content-type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature': new Webhook(secret).sign(id, at, signed),
    ...wish.headers,
  };
  return (await fetch(shop.url, { method: 'POST', headers, body: wish.body ?? signed })).status;
}

describe('whom the shop believes', () => {
  it('a call that is signed with its secret', async () => {
    shop.trust(SECRET);
    expect(await call()).toBe(204);
    expect(await shop.told('email_sent')).toMatchObject([{ id: 'evt_1', type: 'email_sent' }]);
  });

  it('a call with a second signature, as while a secret is being changed', async () => {
    shop.trust(SECRET);
    const at = new Date();
    const both = [OTHER, SECRET].map((key) =>
      new Webhook(key).sign('evt_1', at, payload('email_sent', 'evt_1')),
    );
    expect(await call({ at, headers: { 'webhook-signature': both.join(' ') } })).toBe(204);
  });

  it('nobody, before it knows the secret', async () => {
    expect(await call()).toBe(401);
  });

  it.each<[string, Wish]>([
    ['with another secret', { secret: OTHER }],
    ['for another body', { body: payload('email_bounced', 'evt_1') }],
    ['for another event', { headers: { 'webhook-id': 'evt_2' } }],
    ['with nothing', { headers: { 'webhook-signature': '' } }],
    ['long ago', { at: new Date(Date.now() - 6 * MINUTE) }],
    ['for a time to come', { at: new Date(Date.now() + 6 * MINUTE) }],
    ['at no time', { headers: { 'webhook-timestamp': 'now' } }],
  ])('no call that was signed %s', async (_, wish) => {
    shop.trust(SECRET);
    expect(await call(wish)).toBe(401);
    expect(shop.known().size).toBe(0);
  });
});

describe('what the shop was told', () => {
  beforeEach(() => shop.trust(SECRET));

  it('is handed out once, in the order of arrival', async () => {
    for (const [n, type] of ['email_sent', 'email_clicked', 'email_delivered', 'email_sent'].entries())
      await call({ id: `evt_${n}`, type });
    const kinds = async (...wanted: string[]) =>
      (await shop.told(...wanted)).map(({ type, id }) => [type, id]);
    expect(await kinds('email_delivered', 'email_sent')).toEqual([
      ['email_sent', 'evt_0'],
      ['email_delivered', 'evt_2'],
    ]);
    expect(await kinds('email_sent')).toEqual([['email_sent', 'evt_3']]);
    expect(await kinds('email_clicked')).toEqual([['email_clicked', 'evt_1']]);
  });

  it('is waited for', async () => {
    const told = shop.told('email_sent', 'email_sent');
    await call({ id: 'evt_1' });
    await call({ id: 'evt_2' });
    expect((await told).map(({ id }) => id)).toEqual(['evt_1', 'evt_2']);
  });

  it('counts once, however often it comes', async () => {
    expect([await call(), await call()]).toEqual([204, 204]);
    await call({ id: 'evt_2' });
    expect((await shop.told('email_sent', 'email_sent')).map(({ id }) => id)).toEqual(['evt_1', 'evt_2']);
    expect([...shop.known()]).toEqual(['evt_1', 'evt_2']);
  });
});

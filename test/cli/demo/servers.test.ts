import { Webhook } from 'standardwebhooks';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startWebhookReceiver, type WebhookReceiver } from '../../../src/cli/demo/servers.ts';

/** The demo's receiver is an example for applications: it must verify signatures correctly. */
const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const OTHER = `whsec_${Buffer.alloc(32, 8).toString('base64')}`;
const MINUTE = 60_000;

let receiver: WebhookReceiver;
beforeEach(async () => {
  receiver = await startWebhookReceiver();
});
afterEach(() => receiver.close());

interface CallOptions {
  id?: string;
  type?: string;
  secret?: string;
  at?: Date;
  /** Sent instead of the signed body. */
  body?: string;
  headers?: Record<string, string>;
}

const payload = (type: string, id: string) =>
  JSON.stringify({ id, type, data: { object: { recipient: 'zoe@inbox.test' } } });

/** Sends a call signed by an independent library; returns the status. */
async function call(options: CallOptions = {}): Promise<number> {
  const { id = 'evt_1', type = 'email_sent', secret = SECRET, at = new Date() } = options;
  const signed = payload(type, id);
  const headers = {
    'content-type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature': new Webhook(secret).sign(id, at, signed),
    ...options.headers,
  };
  return (await fetch(receiver.url, { method: 'POST', headers, body: options.body ?? signed })).status;
}

describe('signatures', () => {
  it('accepts a call that is signed with its secret', async () => {
    receiver.trust(SECRET);
    expect(await call()).toBe(204);
    expect(await receiver.next()).toMatchObject({ id: 'evt_1', type: 'email_sent' });
  });

  it('accepts a call with two signatures, as during a rotation of the secret', async () => {
    receiver.trust(SECRET);
    const at = new Date();
    const both = [OTHER, SECRET].map((key) =>
      new Webhook(key).sign('evt_1', at, payload('email_sent', 'evt_1')),
    );
    expect(await call({ at, headers: { 'webhook-signature': both.join(' ') } })).toBe(204);
  });

  it('rejects all calls before it has the secret', async () => {
    expect(await call()).toBe(401);
  });

  it.each<[string, CallOptions]>([
    ['with another secret', { secret: OTHER }],
    ['for another body', { body: payload('email_bounced', 'evt_1') }],
    ['for another event', { headers: { 'webhook-id': 'evt_2' } }],
    ['without a signature', { headers: { 'webhook-signature': '' } }],
    ['too long ago', { at: new Date(Date.now() - 6 * MINUTE) }],
    ['in the future', { at: new Date(Date.now() + 6 * MINUTE) }],
    ['with an invalid time', { headers: { 'webhook-timestamp': 'now' } }],
  ])('rejects a call signed %s', async (_, options) => {
    receiver.trust(SECRET);
    expect(await call(options)).toBe(401);
    expect(receiver.eventIds().size).toBe(0);
  });
});

describe('received calls', () => {
  beforeEach(() => receiver.trust(SECRET));

  it('are returned once, in order of arrival', async () => {
    for (const id of ['evt_1', 'evt_2']) await call({ id });
    expect([await receiver.next(), await receiver.next()].map(({ id }) => id)).toEqual(['evt_1', 'evt_2']);
  });

  it('are awaited', async () => {
    const next = receiver.next();
    await call({ id: 'evt_1' });
    expect((await next).id).toBe('evt_1');
  });

  it('are deduplicated by event id', async () => {
    expect([await call(), await call()]).toEqual([204, 204]);
    await call({ id: 'evt_2' });
    expect([await receiver.next(), await receiver.next()].map(({ id }) => id)).toEqual(['evt_1', 'evt_2']);
    expect([...receiver.eventIds()]).toEqual(['evt_1', 'evt_2']);
  });
});

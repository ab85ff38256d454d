import { describe, expect, it } from 'vitest';
import { hostileBodies, startCompat, TX_FROM } from './setup.ts';

const { api, call, source } = await startCompat('resend');
const KEY = { Authorization: `Bearer ${api.keys.transactional}` };
const SETUP = { Authorization: `Bearer ${api.keys.setup}` };
const MAIL = { from: TX_FROM, to: ['ada@example.net'], subject: 'Order 7', html: '<p>Thank you</p>' };

const send = (body: unknown, headers: Record<string, string> = KEY) => call('/emails', { headers, body });
const idOf = (json: unknown) => (json as { id: string }).id;
const later = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString();

describe('an email', () => {
  it('is accepted with all fields of Resend, and can be read', async () => {
    const { status, json, text } = await send({
      ...MAIL,
      to: 'Ada <ada@example.net>',
      cc: 'carol@example.net',
      bcc: ['dave@example.net'],
      reply_to: ['help@kunde.example', 'shop@kunde.example'],
      text: 'Thank you',
      headers: { 'X-Order': '7' },
      attachments: [
        { filename: 'a.txt', content: 'aGVsbG8=' },
        {
          filename: 'b.png',
          content: { type: 'Buffer', data: [104, 105] },
          content_type: 'image/png',
          content_id: 'b',
        },
      ],
      tags: [{ name: 'order', value: '7' }],
    });
    expect(status, text).toBe(200);
    expect(json).toEqual({ id: expect.stringMatching(/^msg_/) });
    const mail = await source(idOf(json));
    expect(mail).toContain('X-Order: 7');
    expect(mail).toContain('Content-ID: <b>');
    expect(mail).toContain('aGk=');
    expect(await api.message(idOf(json))).toMatchObject({ metadata: { order: '7' } });
    const read = await call(`/emails/${idOf(json)}`, { method: 'GET', headers: SETUP });
    expect(read).toMatchObject({
      status: 200,
      json: { object: 'email', id: idOf(json), to: ['ada@example.net'], subject: 'Order 7' },
    });
  });

  it('is scheduled, rescheduled and cancelled', async () => {
    const { json } = await send({ ...MAIL, scheduled_at: later(1) });
    const path = `/emails/${idOf(json)}`;
    const changed = await call(path, { method: 'PATCH', headers: SETUP, body: { scheduled_at: later(2) } });
    expect(changed).toMatchObject({ status: 200, json: { object: 'email', id: idOf(json) } });
    expect(await call(path, { method: 'GET', headers: SETUP })).toMatchObject({
      json: { last_event: 'scheduled' },
    });
    expect(await call(`${path}/cancel`, { headers: SETUP })).toMatchObject({
      status: 200,
      json: { object: 'email' },
    });
    expect(await call(path, { method: 'GET', headers: SETUP })).toMatchObject({
      json: { last_event: 'canceled' },
    });
    expect(await call(`${path}/cancel`, { headers: SETUP })).toMatchObject({ status: 422 });
    const several = await send({ ...MAIL, cc: 'bob@example.net', scheduled_at: later(1) });
    expect(several).toMatchObject({ status: 422, json: { name: 'validation_error' } });
  });

  it('of a live key is not rescheduled by a test key', async () => {
    const key = { name: 'tests', scopes: ['setup'], livemode: false };
    const { data } = await api.post<{ secret: string }>('/web-setup/keys', key);
    const { json } = await send({ ...MAIL, scheduled_at: later(1) });
    const refused = await call(`/emails/${idOf(json)}`, {
      method: 'PATCH',
      headers: { Authorization: `Bearer ${data.secret}` },
      body: { scheduled_at: later(0) },
    });
    expect(refused).toMatchObject({ status: 403, json: { name: 'validation_error' } });
    expect(await api.message(idOf(json))).toMatchObject({ status: 'scheduled' });
  });

  it('is sent once for an Idempotency-Key', async () => {
    const headers = { ...KEY, 'Idempotency-Key': 'one' };
    const first = await send(MAIL, headers);
    expect((await send(MAIL, headers)).json).toEqual(first.json);
    expect(await send({ ...MAIL, subject: 'Other' }, headers)).toMatchObject({
      status: 409,
      json: { statusCode: 409, name: 'invalid_idempotent_request' },
    });
  });
});

describe('a batch', () => {
  const invalidMail = { ...MAIL, to: ['nobody'] };

  it('is accepted as a whole, or refused', async () => {
    const body = [MAIL, { ...MAIL, to: ['bob@example.net'] }];
    expect(await call('/emails/batch', { headers: KEY, body })).toMatchObject({
      status: 200,
      json: { data: [{ id: expect.any(String) }, { id: expect.any(String) }] },
    });
    const refused = await call('/emails/batch', { headers: KEY, body: [MAIL, invalidMail] });
    expect(refused).toMatchObject({ status: 422, json: { name: 'validation_error' } });
  });

  it('names the errors if it is permissive', async () => {
    const headers = { ...KEY, 'x-batch-validation': 'permissive' };
    expect(await call('/emails/batch', { headers, body: [MAIL, invalidMail] })).toMatchObject({
      status: 200,
      json: { data: [{ id: expect.any(String) }], errors: [{ index: 1, message: expect.any(String) }] },
    });
  });
});

describe('an error', () => {
  it('has the status and the name of Resend', async () => {
    for (const [status, name, body, headers] of [
      [401, 'invalid_api_key', MAIL, {}],
      [403, 'validation_error', { ...MAIL, from: 'a@other.example' }, KEY],
      [422, 'validation_error', { ...MAIL, to: undefined }, KEY],
      [422, 'validation_error', { ...MAIL, topic_id: 'x' }, KEY],
      [
        422,
        'invalid_attachment',
        { ...MAIL, attachments: [{ filename: 'a', path: 'https://x.example' }] },
        KEY,
      ],
      [422, 'validation_error', { ...MAIL, scheduled_at: 'in 1 hour' }, KEY],
    ] as const)
      expect(await send(body, headers)).toMatchObject({ status, json: { statusCode: status, name } });
    expect(await call('/emails/msg_1', { method: 'GET', headers: KEY })).toMatchObject({
      status: 401,
      json: { name: 'restricted_api_key' },
    });
    expect(await call('/emails/msg_1', { method: 'GET', headers: SETUP })).toMatchObject({
      status: 404,
      json: { name: 'not_found' },
    });
  });

  it('is never that of the server for a body that is not valid', async () => {
    const bodies = hostileBodies(MAIL, [
      'headers',
      'attachments',
      'tags',
      'scheduled_at',
      'template',
      'reply_to',
    ]);
    const answers = await Promise.all(bodies.map((body) => send(body)));
    const batches = await Promise.all(
      bodies.map((body) => call('/emails/batch', { headers: KEY, body: [body] })),
    );
    for (const [index, { status, text }] of [...answers, ...batches].entries()) {
      expect(status, `${JSON.stringify(bodies[index % bodies.length]).slice(0, 200)} → ${text}`).toBeLessThan(
        500,
      );
      if (status !== 200) expect(text).toMatch(/^\{"statusCode":/);
    }
  });
});

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { refuse } from '../../src/core/refusal.ts';
import { faultRefusal, refusalBody, refusedItemBody } from '../../src/http/responses.ts';
import { PartlyDone } from '../../src/store/database/failure.ts';
import { type Api, jsonOf, startApi } from './harness.ts';
import { sampleRoutes } from './sample-routes.ts';

let api: Api;
beforeAll(async () => {
  api = await startApi({ routes: sampleRoutes });
});
afterAll(() => api.stop());

function send(body: object, headers: Record<string, string> = {}) {
  return fetch(`${api.base}/transactional/send`, {
    method: 'POST',
    headers: { ...api.as('transactional'), 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
}

describe('a success', () => {
  it('has data in the envelope and the common header fields', async () => {
    const response = await send({ to: 'ann' });
    expect(response.status).toBe(200);
    expect(await response.text()).toBe('{"success":true,"data":{"messageId":"msg_1"}}');
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(response.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
  });

  it('sends a stored response unchanged, with its header fields', async () => {
    const response = await send({ to: 'again', mystery: 1 });
    expect(await response.text()).toBe('{"stored":true}');
    expect(response.headers.get('idempotency-replayed')).toBe('true');
  });
});

describe('a refusal', () => {
  it.each([
    ['long messages', 50, 5000],
    ['many errors', 100_000, 20],
    ['characters of several bytes', 50, 2000],
  ])('stays below 16 KiB with %s', (_, count, length) => {
    const message = '€'.repeat(length);
    const details = Array.from({ length: count }, (_, n) => ({ field: `f${n}`, message }));
    const body = refusalBody(refuse('VALIDATION_ERROR', message, { details }), 'request');
    expect(Buffer.byteLength(body)).toBeLessThan(16 * 1024);
    const named: { field: string; message: string }[] = JSON.parse(body).error.details;
    expect(named.at(-1)?.message).toBe(`and ${count - named.length + 1} more errors`);
  });

  it('limits the number of details', () => {
    const details = [1, 2, 3].map((n) => ({ field: `f${n}`, message: 'is wrong' }));
    const body = refusalBody(refuse('VALIDATION_ERROR', 'no', { details }), 'request', 1);
    expect(JSON.parse(body).error.details).toEqual([
      { field: 'f1', message: 'is wrong' },
      { field: 'f2', message: 'and 2 more errors' },
    ]);
  });

  it('has the seconds of Retry-After in the error of an item', () => {
    const errorOf = (...refusal: Parameters<typeof refuse>) =>
      JSON.parse(refusedItemBody(refuse(...refusal), 'request', 1)).error;
    expect(errorOf('RATE_LIMITED', 'later', { retryAfter: 60 })).toEqual({
      code: 'RATE_LIMITED',
      message: 'later',
      retryAfter: 60,
    });
    expect(errorOf('UNAVAILABLE', 'later')).toMatchObject({ retryAfter: 10 });
    expect(errorOf('CONSENT_REQUIRED', 'no')).toEqual({ code: 'CONSENT_REQUIRED', message: 'no' });
  });

  it('has the error envelope with repeated fields', async () => {
    const response = await send({ to: 'unknown' }, { 'X-Request-Id': 'abc' });
    expect(response.status).toBe(403);
    expect(await response.json()).toEqual({
      success: false,
      error: {
        code: 'CONSENT_REQUIRED',
        message: 'no consent',
        details: [{ field: 'to', message: 'has given no consent' }],
      },
      message: 'no consent',
      reasonCode: 'CONSENT_REQUIRED',
      requestId: 'abc',
      subscriptionStatus: 'not_subscribed',
    });
    expect(response.headers.get('cache-control')).toBe('no-store');
  });
});

describe('a fault', () => {
  it('is 500 without details, and is logged once with the request id', async () => {
    api.logged.length = 0;
    const response = await send({ to: 'boom' }, { 'X-Request-Id': 'trace-1' });
    const text = await response.text();
    expect(response.status).toBe(500);
    expect(JSON.parse(text)).toMatchObject({ reasonCode: 'INTERNAL_ERROR', requestId: 'trace-1' });
    expect(text).not.toMatch(/secret|srv|Error:|\.ts/);
    expect(api.logged).toHaveLength(1);
    expect(api.logged[0]).toMatchObject({
      level: 'error',
      requestId: 'trace-1',
      operationId: 'sendTransactional',
      err: { message: 'secret detail of /srv/postrider' },
    });
  });
});

describe('an I/O error of the database', () => {
  it('is 503 with Retry-After, and is logged once for many requests', async () => {
    api.logged.length = 0;
    for (let n = 0; n < 20; n++) {
      const response = await send({ to: 'disk' }, { 'X-Request-Id': `trace-${n}` });
      expect(response.status).toBe(503);
      expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0);
      expect(await response.json()).toMatchObject({
        success: false,
        reasonCode: 'UNAVAILABLE',
        message: 'The request was not processed: the disk reports an I/O error',
      });
    }
    expect(api.logged).toMatchObject([
      { level: 'error', requestId: 'trace-0', err: { code: 'SQLITE_IOERR_READ' } },
    ]);
  });
});

describe('a fault in work that is done in portions', () => {
  const disk = Object.assign(new Error('no space'), { code: 'SQLITE_FULL' });

  it('states what was done before', () => {
    expect(faultRefusal(new PartlyDone('300 rows were imported', disk))).toMatchObject({
      code: 'UNAVAILABLE',
      message: 'The request was not completed: the disk is full. Before that, 300 rows were imported',
    });
    expect(faultRefusal(new PartlyDone('300 rows were imported', new Error('secret')))).toMatchObject({
      code: 'INTERNAL_ERROR',
      message:
        'Internal error; the log has the details under this request id. Before that, 300 rows were imported',
    });
  });
});

describe('X-Request-Id', () => {
  it.each([
    ['order-17.A_b', true],
    ['x'.repeat(128), true],
    ['x'.repeat(129), false],
    ['two words', false],
    ['<script>', false],
    ['ä', false],
  ])('%j is echoed: %s', async (sent, echoed) => {
    const response = await fetch(`${api.base}/healthz`, { headers: { 'X-Request-Id': sent } });
    const id = response.headers.get('x-request-id');
    expect(id === sent).toBe(echoed);
    expect(id).toMatch(/^[A-Za-z0-9._-]+$/);
  });

  it('is generated for each request without one', async () => {
    const ids = await Promise.all(
      [1, 2, 3].map(async () => (await fetch(`${api.base}/none`)).headers.get('x-request-id')),
    );
    expect(new Set(ids).size).toBe(3);
  });
});

describe('unknown fields', () => {
  it.each<[object, string[]]>([
    [{ to: 'a', subjct: 'x' }, ['unknown field "subjct" was ignored; did you mean "subject"?']],
    [{ to: 'a', foo: 1, bar: 2 }, ['unknown field "foo" was ignored', 'unknown field "bar" was ignored']],
    [
      {
        to: 'a',
        attachments: [
          { name: 'x', content: '' },
          { name: 'y', content: '', contnt: '' },
        ],
      },
      ['unknown field "attachments[1].contnt" was ignored; did you mean "content"?'],
    ],
    [{ to: 'a', headers: { 'X-Any': 'y' }, anything: { at: { all: 1 } } }, []],
    [JSON.parse('{"to":"a","__proto__":{"admin":true}}'), ['unknown field "__proto__" was ignored']],
    [{ to: 'a', 'a b': 1 }, ['unknown field "["a b"]" was ignored']],
  ])('%j', async (body, warnings) => {
    const response = await fetch(`${api.base}/web-setup/things`, {
      method: 'POST',
      headers: { ...api.as('setup'), 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    });
    const { data } = await jsonOf(response);
    expect(response.status).toBe(201);
    expect((data as Record<string, unknown>)['warnings']).toEqual(
      warnings.length === 0 ? undefined : warnings,
    );
  });

  it('are counted if there are many', async () => {
    const body: Record<string, unknown> = { to: 'a' };
    for (let at = 0; at < 50; at++) body[`unknown${at}`] = 1;
    const { data } = await jsonOf(await send(body));
    const warnings = (data as Record<string, string[]>)['warnings'];
    expect(warnings).toHaveLength(21);
    expect(warnings?.at(-1)).toBe('and 30 more were ignored');
  });

  it('cause warnings in the query as well', async () => {
    const response = await fetch(`${api.base}/web-setup/things/one?limt=3`, { headers: api.as('setup') });
    expect(await response.json()).toEqual({
      success: true,
      data: {
        thingId: 'one',
        limit: 50,
        warnings: ['unknown query parameter "limt" was ignored; did you mean "limit"?'],
      },
    });
  });
});

import { Gauge } from 'prom-client';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { createLog } from '../../src/core/log.ts';
import { refuse } from '../../src/core/refusal.ts';
import { createProbe } from '../../src/http/health.ts';
import { type Api, jsonOf, startApi, type TestApiOptions } from './harness.ts';
import { sampleRoutes } from './sample-routes.ts';

let api: Api;
afterEach(() => api.stop());

async function start(options: TestApiOptions = {}) {
  api = await startApi(options);
}

describe('health', () => {
  it('is reported at /web-setup/health without a key', async () => {
    await start();
    const response = await fetch(`${api.base}/web-setup/health`);
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({ success: true, data: { status: 'ok' }, status: 'ok' });
  });

  it('is reported at /healthz', async () => {
    await start();
    expect((await fetch(`${api.base}/healthz`)).status).toBe(200);
  });
});

describe('/readyz', () => {
  const well = { name: 'database', check: () => null };

  it('is 200 when all checks pass', async () => {
    await start({ options: { health: [well, { name: 'queue', check: async () => null }] } });
    const response = await fetch(`${api.base}/readyz`);
    expect(response.status).toBe(200);
    expect(await jsonOf(response)).toMatchObject({
      data: {
        status: 'ready',
        checks: [
          { check: 'database', ok: true },
          { check: 'queue', ok: true },
        ],
      },
    });
  });

  it('is 200 when only excluded checks fail, and still shows them', async () => {
    const backup = { name: 'backup', check: () => 'overdue' };
    await start({ options: { health: [well, backup] } });
    expect((await fetch(`${api.base}/readyz`)).status).toBe(503);
    const response = await fetch(`${api.base}/readyz?exclude=queue,backup`);
    expect(response.status).toBe(200);
    expect(await jsonOf(response)).toMatchObject({
      data: { checks: [{ check: 'database' }, { check: 'backup', ok: false, message: 'overdue' }] },
    });
  });

  it('is 503 with the failed checks, including one that throws', async () => {
    const broken = {
      name: 'queue',
      check: () => {
        throw new Error('secret path');
      },
    };
    const slow = { name: 'listeners', check: async () => 'mx.listen is not bound' };
    await start({ options: { health: [well, slow, broken] } });
    const response = await fetch(`${api.base}/readyz`);
    expect(response.status).toBe(503);
    expect(response.headers.has('retry-after')).toBe(true);
    expect(await jsonOf(response)).toMatchObject({
      reasonCode: 'UNAVAILABLE',
      error: {
        message: 'Not ready: listeners, queue',
        details: [
          { field: 'listeners', message: 'mx.listen is not bound' },
          { field: 'queue', message: 'the check itself failed; see the log' },
        ],
      },
    });
    expect(api.logged).toMatchObject([{ check: 'queue', err: { message: 'secret path' } }]);
  });

  it('is 503 with the results of all checks', async () => {
    await start({ options: { health: [well, { name: 'sends', check: () => 'the disk is nearly full' }] } });
    const response = await fetch(`${api.base}/readyz`);
    expect(response.headers.get('retry-after')).toBe('10');
    expect(await jsonOf(response)).toMatchObject({
      success: false,
      reasonCode: 'UNAVAILABLE',
      data: {
        status: 'not ready',
        checks: [
          { check: 'database', ok: true },
          { check: 'sends', ok: false, message: 'the disk is nearly full' },
        ],
      },
    });
  });

  it.each<[string, Record<string, string>, object]>([
    ['shows details of passing checks to local clients', {}, { details: { parked: 2 } }],
    ['hides details from other clients', { 'X-Forwarded-For': '203.0.113.9' }, {}],
  ])('%s', async (_, headers, shown) => {
    const queue = { name: 'queue', check: () => null, details: () => ({ parked: 2 }) };
    await start({ options: { health: [queue, { ...well, details: () => null }] } });
    const response = await fetch(`${api.base}/readyz`, { headers });
    expect(await jsonOf(response)).toEqual({
      success: true,
      data: {
        status: 'ready',
        checks: [
          { check: 'queue', ok: true, ...shown },
          { check: 'database', ok: true },
        ],
      },
    });
  });
});

describe('a readiness probe', () => {
  function probe(run: () => Promise<unknown>) {
    const logged: Record<string, unknown>[] = [];
    const log = createLog(
      { level: 'info', hashAddresses: false },
      { write: (line) => logged.push(JSON.parse(line)) },
    );
    const clock = { now: 0 };
    const made = createProbe({ name: 'database', log, run, intervalMs: 1, now: () => clock.now });
    onTestFinished(made.stop);
    return { ...made, logged, clock };
  }

  it('runs independently of the requests for its result', async () => {
    let runs = 0;
    const { check, start, stop } = probe(async () => runs++);
    await start();
    stop();
    for (let n = 0; n < 1000; n++) expect(check()).toBeNull();
    expect(runs).toBe(1);
  });

  it('reports the reason, logs it once, and recovers', async () => {
    const outcomes = ['SQLITE_FULL', 'SQLITE_FULL', 'SQLITE_FULL', null, null];
    let runs = 0;
    const { check, start, logged } = probe(async () => {
      const code = outcomes[Math.min(runs++, outcomes.length - 1)];
      if (typeof code === 'string') throw Object.assign(new Error('database or disk is full'), { code });
    });
    await start();
    expect(check()).toBe('the disk is full');
    await expect.poll(check).toBeNull();
    expect(logged.map(({ msg }) => msg)).toEqual([
      'background work failed; trying again later',
      'background work succeeds again',
    ]);
  });

  it('fails while a run hangs', async () => {
    const { check, start, clock } = probe(() => new Promise(() => {}));
    void start();
    expect(check()).toBeNull();
    clock.now = 12_000;
    expect(check()).toBe('no response for 12 s');
  });
});

describe('/metrics', () => {
  const KEY = 'a-long-metrics-key';
  const FORWARDED = { 'X-Forwarded-For': '203.0.113.9' };

  it.each<[string, string | undefined, Record<string, string>, number]>([
    ['a local client', undefined, {}, 200],
    ['a local client without the configured key', KEY, {}, 401],
    ['a local client with the key', KEY, { Authorization: `Bearer ${KEY}` }, 200],
    ['another client with the key', KEY, { ...FORWARDED, Authorization: `Bearer ${KEY}` }, 200],
    ['another client with a wrong key', KEY, { ...FORWARDED, Authorization: `Bearer ${KEY}x` }, 401],
    ['another client without a key', KEY, FORWARDED, 401],
    [
      'another client when no key is configured',
      undefined,
      { ...FORWARDED, Authorization: 'Bearer undefined' },
      401,
    ],
    ['a client that claims a local address', KEY, { 'X-Forwarded-For': '127.0.0.1' }, 401],
  ])('checks the key of %s', async (_, metricsKey, headers, status) => {
    await start({ api: { metricsKey } });
    expect((await fetch(`${api.base}/metrics`, { headers })).status).toBe(status);
  });

  it('has requests by operation and status, and all other metrics', async () => {
    await start({ routes: sampleRoutes });
    new Gauge({ name: 'queue_length', help: 'x', registers: [api.registry] }).set(7);
    await fetch(`${api.base}/web-setup/things/one`, { headers: api.as('setup') });
    await fetch(`${api.base}/web-setup/things/two`);
    await fetch(`${api.base}/nothing/here`);
    const text = await (await fetch(`${api.base}/metrics`)).text();
    expect(text).toContain('postrider_http_requests_total{operation="getThing",status="200"} 1');
    expect(text).toContain('postrider_http_requests_total{operation="getThing",status="401"} 1');
    expect(text).toContain('postrider_http_requests_total{operation="none",status="404"} 1');
    expect(text).toContain('postrider_http_request_seconds_count{operation="getThing"} 2');
    expect(text).toContain('queue_length 7');
    expect(text).not.toContain('things/one');
  });
});

it('serves open routes of other modules, which may return a refusal', async () => {
  const page = {
    path: '/tls-check',
    operationId: 'tlsCheck',
    tag: 'Operations',
    summary: 'Whether a host is ours',
    responses: { 200: { description: 'It is.', contentType: 'text/plain' } },
    handle: ({ query }: { query: URLSearchParams }) =>
      query.get('domain') === 'ours.example'
        ? { status: 200, contentType: 'text/plain', body: 'yes' }
        : refuse('NOT_FOUND', 'not ours'),
  };
  await start({ options: { openRoutes: [page] } });
  expect(await (await fetch(`${api.base}/tls-check?domain=ours.example`)).text()).toBe('yes');
  expect((await fetch(`${api.base}/tls-check?domain=other.example`)).status).toBe(404);
});

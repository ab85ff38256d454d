import { connect, type Socket } from 'node:net';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import * as z from 'zod';
import { isRefusal } from '../../src/core/refusal.ts';
import { createBodyReader } from '../../src/http/body/body.ts';
import { routesOf } from '../../src/http/route.ts';
import { type Api, jsonOf, startApi } from './harness.ts';
import { sampleRoutes } from './sample-routes.ts';

const route = routesOf({ tag: 'Things', scope: 'setup' });

let api: Api;
afterEach(() => api.stop());

/** The headers of another account's key. */
async function another(name: string): Promise<Record<string, string>> {
  const made = await api.accounts.create({ name });
  if (isRefusal(made)) throw new Error(made.message);
  return { 'X-Api-Key': made.keys.setup, 'X-Id': made.account.accountId };
}

/** An operation that occupies the event loop for 4 ms, and one that waits until it is released. */
function routes() {
  const handled: string[] = [];
  const waiting: (() => void)[] = [];
  const response = { description: 'Done.', data: z.object({}) };
  const release = () => new Promise<void>((resolve) => void waiting.push(resolve));
  const busy = route('POST /web-setup/busy', {
    operationId: 'busy',
    summary: 'Occupies the event loop',
    response,
    handle: ({ caller }) => {
      handled.push(caller.accountId);
      const end = performance.now() + 4;
      while (performance.now() < end);
      return {};
    },
  });
  const hold = route('POST /web-setup/hold', {
    operationId: 'hold',
    summary: 'Waits',
    response,
    handle: () => release().then(() => ({})),
  });
  const holdBody = route('POST /web-setup/hold-body', {
    summary: 'Waits',
    response,
    handle: () => release().then(() => ({})),
    operationId: 'holdBody',
    body: z.object({ to: z.string() }),
    example: { to: 'ann' },
  });
  return { handled, waiting, routes: [...sampleRoutes, busy, hold, holdBody] };
}

const post = (path: string, headers: Record<string, string>) =>
  fetch(`${api.base}${path}`, { method: 'POST', headers });

describe('an account, while three others overload the service', () => {
  it('waits for a few turns of the others, not for their queues', async () => {
    const { handled, routes: all } = routes();
    api = await startApi({ routes: all });
    const abusers = await Promise.all(['one', 'two', 'three'].map(another));
    const ending = new AbortController();
    const abuse = abusers.flatMap((headers) =>
      Array.from({ length: 30 }, async () => {
        while (!ending.signal.aborted) await (await post('/web-setup/busy', headers)).arrayBuffer();
      }),
    );
    while (handled.length < 200) await new Promise((resolve) => setTimeout(resolve, 10));
    const id = api.account.accountId;
    const waited: number[] = [];
    for (let n = 0; n < 20; n++) {
      const before = handled.length;
      await (await post('/web-setup/busy', api.as('setup'))).arrayBuffer();
      waited.push(handled.lastIndexOf(id) - before);
    }
    ending.abort();
    await Promise.all(abuse);
    // 90 requests wait at any time; in order of arrival this one would wait for all of them.
    waited.sort((a, b) => a - b);
    expect(waited[10]).toBeLessThanOrEqual(12);
    expect(waited.at(-1)).toBeLessThanOrEqual(30);
  });
});

describe('concurrent requests', () => {
  it('are limited for each account', async () => {
    const { waiting, routes: all } = routes();
    api = await startApi({ routes: all, concurrency: 3 });
    const other = await another('other');
    const held = Array.from({ length: 3 }, () => post('/web-setup/hold', api.as('setup')));
    await expect.poll(() => waiting.length).toBe(3);

    const refused = await post('/web-setup/hold', api.as('setup'));
    expect(refused.status).toBe(429);
    expect(refused.headers.get('retry-after')).toBe('1');
    expect(refused.headers.get('ratelimit-policy')).toBe('"concurrent-requests";q=3;w=1');
    expect(await jsonOf(refused)).toMatchObject({
      reasonCode: 'RATE_LIMITED',
      message: 'This account has reached its limit of 3 concurrent requests',
      error: { details: [{ name: 'concurrentRequests' }] },
    });
    const fine = post('/web-setup/hold', other);
    await expect.poll(() => waiting.length).toBe(4);

    for (const release of waiting.splice(0)) release();
    for (const response of await Promise.all([...held, fine])) expect(response.status).toBe(200);
    const next = post('/web-setup/hold', api.as('setup'));
    await expect.poll(() => waiting.length).toBe(1);
    waiting[0]?.();
    expect((await next).status).toBe(200);
  });

  it('delay large responses until others of the account end, and no longer when their client disconnects', async () => {
    const { waiting, routes: all } = routes();
    const isHold = (path: string) => path === '/web-setup/hold';
    const routesWithLarge = all.map((one) => ({ ...one, hasLargeResponse: isHold(one.path) }));
    api = await startApi({ routes: routesWithLarge, concurrency: 6 });
    const other = await another('other');
    const held = Array.from({ length: 4 }, () => post('/web-setup/hold', api.as('setup')));
    await expect.poll(() => waiting.length).toBe(4);
    const caller = new AbortController();
    const gone = fetch(`${api.base}/web-setup/hold`, {
      method: 'POST',
      headers: api.as('setup'),
      signal: caller.signal,
    });
    const next = post('/web-setup/hold', api.as('setup'));
    const fine = post('/web-setup/hold', other);
    await expect.poll(() => waiting.length).toBe(5);
    const small = async () =>
      (await fetch(`${api.base}/web-setup/things/one`, { headers: api.as('setup') })).status;
    await expect.poll(small).toBe(429);
    caller.abort();
    await expect(gone).rejects.toThrow();
    await expect.poll(small).toBe(200);

    for (const release of waiting.splice(0)) release();
    for (const response of [...(await Promise.all(held)), await fine]) {
      expect(response.status).toBe(200);
      await response.arrayBuffer();
    }
    await expect.poll(() => waiting.length).toBe(1);
    waiting[0]?.();
    expect((await next).status).toBe(200);
  });

  it('are released when the client disconnects', async () => {
    const { waiting, routes: all } = routes();
    api = await startApi({ routes: all, concurrency: 1 });
    const caller = new AbortController();
    const held = fetch(`${api.base}/web-setup/hold`, {
      method: 'POST',
      headers: api.as('setup'),
      signal: caller.signal,
    });
    await expect.poll(() => waiting.length).toBe(1);
    caller.abort();
    await expect(held).rejects.toThrow();
    await expect
      .poll(
        async () => (await fetch(`${api.base}/web-setup/things/one`, { headers: api.as('setup') })).status,
      )
      .toBe(200);
  });
});

describe('the request rate of an account', () => {
  it('is shared by its keys', async () => {
    const roomy = { burst: 1000, perSecond: 1000 };
    api = await startApi({
      routes: sampleRoutes,
      rates: { setup: roomy, send: null, account: { setup: { burst: 3, perSecond: 1 } } },
    });
    const { accountId } = api.account;
    const key = await api.keys.create({ accountId, name: 'second', scopes: ['setup'] });
    if (isRefusal(key)) throw new Error(key.message);
    const second = { 'X-Api-Key': key.secret, 'X-Id': accountId };
    const get = (headers: Record<string, string>) => fetch(`${api.base}/web-setup/things/one`, { headers });
    for (const headers of [api.as('setup'), second, second]) expect((await get(headers)).status).toBe(200);
    const refused = await get(api.as('setup'));
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1']);
    expect(refused.headers.get('ratelimit-policy')).toBe('"setup-account";q=3;w=3');
    expect((await jsonOf(refused))['message']).toBe(
      'This account has reached its limit of 1 requests per second',
    );
    expect((await get(await another('other'))).status).toBe(200);
  });
});

describe('slow uploads', () => {
  const json = { idleMs: 400, graceMs: 600, bytesPerSecond: 50_000 };
  const upload = json;

  function slowUpload(
    headers: Record<string, string>,
    length = 200_000,
  ): { socket: Socket; answer: Promise<string> } {
    const fields = Object.entries({ Host: 'x', 'Content-Type': 'application/json', ...headers })
      .map(([name, value]) => `${name}: ${value}\r\n`)
      .join('');
    const socket = connect(api.port, '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    const answer = new Promise<string>((resolve) => {
      let text = '';
      socket.on('data', (chunk) => {
        text += String(chunk);
      });
      socket.on('close', () => resolve(text));
      socket.on('error', () => undefined);
    });
    socket.write(`POST /web-setup/things HTTP/1.1\r\n${fields}Content-Length: ${length}\r\n\r\n{"to":"`);
    return { socket, answer };
  }

  it('get 408 and are closed when they stop', async () => {
    api = await startApi({
      routes: sampleRoutes,
      limits: { setupBytes: 1_000_000 },
      options: { bodies: createBodyReader({ paces: { json, upload } }) },
    });
    const answer = await slowUpload(api.as('setup')).answer;
    expect(answer).toMatch(/^HTTP\/1\.1 408 /);
    expect(answer).toMatch(/\r\nConnection: close\r\n/i);
    expect(answer).toContain('"REQUEST_TIMEOUT"');
  });

  it('get 408 below the minimum rate only', async () => {
    api = await startApi({
      routes: sampleRoutes,
      limits: { setupBytes: 1_000_000 },
      options: { bodies: createBodyReader({ paces: { json, upload } }) },
    });
    const trickle = slowUpload(api.as('setup'));
    const slow = setInterval(() => trickle.socket.write('x'), 50);
    onTestFinished(() => clearInterval(slow));
    const steady = slowUpload({ ...api.as('setup'), Connection: 'close' }, 7 + 150_000 + 2);
    let left = 15;
    const fair = setInterval(() => {
      if (left-- > 0) steady.socket.write('x'.repeat(10_000));
      else {
        steady.socket.write('"}');
        clearInterval(fair);
      }
    }, 80);
    onTestFinished(() => clearInterval(fair));
    expect(await trickle.answer).toMatch(/^HTTP\/1\.1 408 /);
    expect(await steady.answer).toMatch(/^HTTP\/1\.1 201 /);
  });

  it('do not block another account', async () => {
    const total = 1024 * 1024;
    api = await startApi({
      routes: sampleRoutes,
      limits: { setupBytes: total },
      options: { bodies: createBodyReader({ maxWaiting: total }) },
    });
    const filling = Array.from({ length: 8 }, () => {
      const one = slowUpload(api.as('setup'), total - 10);
      one.socket.write('x'.repeat(400_000));
      return one;
    });
    const first = await Promise.race(
      filling.map(({ answer, socket }) => {
        const refused = new Promise<string>((resolve) =>
          socket.once('data', (chunk) => resolve(String(chunk))),
        );
        return Promise.race([answer, refused]);
      }),
    );
    expect(first).toMatch(/^HTTP\/1\.1 429 /);
    const large = await fetch(`${api.base}/web-setup/things`, {
      method: 'POST',
      headers: { ...(await another('other')), 'Content-Type': 'application/json' },
      body: JSON.stringify({ to: 'x'.repeat(200_000) }),
    });
    expect(large.status).toBe(201);
    const small = await fetch(`${api.base}/web-setup/things`, {
      method: 'POST',
      headers: { ...api.as('setup'), 'Content-Type': 'application/json' },
      body: '{"to":"ann"}',
    });
    expect(small.status).toBe(201);
  });

  it('hold their memory until the response has ended', async () => {
    const total = 1024 * 1024;
    const { routes: all, waiting } = routes();
    api = await startApi({
      routes: all,
      limits: { setupBytes: total },
      options: { bodies: createBodyReader({ maxWaiting: total }) },
    });
    const send = (path: string) =>
      fetch(`${api.base}${path}`, {
        method: 'POST',
        headers: { ...api.as('setup'), 'Content-Type': 'application/json' },
        body: JSON.stringify({ to: 'x'.repeat(300_000) }),
      });
    const held = send('/web-setup/hold-body');
    await expect.poll(() => waiting.length).toBe(1);
    expect((await send('/web-setup/things')).status).toBe(429);
    waiting[0]?.();
    expect((await held).status).toBe(200);
    await expect.poll(async () => (await send('/web-setup/things')).status).toBe(201);
  });
});

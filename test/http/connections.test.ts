import { connect } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import * as z from 'zod';
import { routesOf } from '../../src/http/route.ts';
import { type Api, exchange, jsonOf, startApi } from './harness.ts';
import { sampleRoutes } from './sample-routes.ts';

const route = routesOf({ tag: 'Things', scope: 'setup' });

let api: Api;
afterEach(() => api.stop());

/** A promise that the test resolves. */
function gate() {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
}

/** A handler that waits for its signal, and reports start and abort to the test. */
function waitingRoute() {
  const events: string[] = [];
  const started = gate();
  const aborted = gate();
  const waiting = route('GET /web-setup/wait', {
    operationId: 'wait',
    summary: 'Waits',
    response: { description: 'Done.', data: z.object({ events: z.array(z.string()) }) },
    handle: async ({ signal }) => {
      started.open();
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      events.push('aborted');
      aborted.open();
      return { events };
    },
  });
  return { waiting, started: started.opened, aborted: aborted.opened };
}

describe('invalid requests', () => {
  it.each([
    ['text that is not HTTP', 'hello\r\n\r\n', '400'],
    ['TLS', Buffer.from([0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3]), '400'],
    ['a request without Host', 'GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n', '400'],
    ['two lengths', 'POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n', '400'],
    [
      'a length and chunks',
      'POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
      '400',
    ],
    ['an endless header', `GET / HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(20_000)}`, '431'],
    [
      'too many header fields',
      `GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${'X: y\r\n'.repeat(99)}\r\n`,
      '400',
    ],
    ['an endless request target', `GET /${'x'.repeat(20_000)}`, '431'],
  ])('%s', async (_, sent, status) => {
    api = await startApi();
    const answer = await exchange(api.port, sent);
    expect(answer.split(' ')[1]).toBe(status);
    expect(answer).toContain('"success":false');
    expect(answer).toMatch(/\r\nX-Request-Id: [0-9a-f-]{36}\r\n/i);
  });
});

it('a client of a proxy cannot hide its address behind many header fields', async () => {
  api = await startApi({ api: { trustedProxies: ['127.0.0.1'] } });
  const get = (fields: number) =>
    exchange(
      api.port,
      `GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${'A: b\r\n'.repeat(fields)}X-Forwarded-For: 203.0.113.9\r\n\r\n`,
    );
  expect(await get(97)).toMatch(/^HTTP\/1.1 401 /);
  expect(await get(98)).toMatch(/^HTTP\/1.1 400 /);
  // Newer versions of Node count bytes for each field, and refuse this for its size.
  expect(await get(1000)).toMatch(/^HTTP\/1.1 (400|431) /);
});

describe('a slow client', () => {
  const impatient = { headersMs: 300, requestMs: 600, checkMs: 50 };

  it.each([
    ['its header', () => 'GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: '],
    [
      'its body',
      () =>
        `POST /web-setup/things HTTP/1.1\r\nHost: x\r\nX-Api-Key: ${api.secrets.setup}\r\nX-Id: ${api.account.accountId}\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n`,
    ],
  ])('gets an error and is disconnected: %s', async (_, head) => {
    api = await startApi({ routes: sampleRoutes, options: { connectionLimits: impatient } });
    const answer = await new Promise<string>((resolve) => {
      let text = '';
      const socket = connect(api.port, '127.0.0.1', () => socket.write(head()));
      const drip = setInterval(() => socket.write('x'), 40);
      socket.on('data', (chunk) => {
        text += chunk.toString();
      });
      socket.on('error', () => {});
      socket.on('close', () => {
        clearInterval(drip);
        resolve(text);
      });
    });
    expect(answer).toMatch(/^HTTP\/1\.1 408 /);
    expect(answer).toContain('The request did not arrive in time');
  });

  it('is disconnected for a new client when there are as many connections as permitted', async () => {
    api = await startApi({ options: { connectionLimits: { connections: 2 } } });
    const holders = [1, 2].map(() => connect(api.port, '127.0.0.1'));
    await Promise.all(holders.map((socket) => new Promise((resolve) => socket.once('connect', resolve))));
    const closed = new Promise((resolve) => holders[0]?.once('close', resolve));
    const request = 'GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';
    expect(await exchange(api.port, request)).toMatch(/^HTTP\/1\.1 200 /);
    await closed;
    for (const socket of holders) socket.destroy();
  });
});

describe('a waiting handler', () => {
  it('is aborted when the client disconnects', async () => {
    const { waiting, started, aborted } = waitingRoute();
    api = await startApi({ routes: [waiting] });
    const caller = new AbortController();
    const answer = fetch(`${api.base}/web-setup/wait`, { headers: api.as('setup'), signal: caller.signal });
    await started;
    caller.abort();
    await expect(answer).rejects.toThrow();
    await aborted;
  });

  it('is aborted when the server closes, and its response is sent', async () => {
    const { waiting, started } = waitingRoute();
    api = await startApi({ routes: [waiting] });
    const answer = fetch(`${api.base}/web-setup/wait`, { headers: api.as('setup') });
    await started;
    const closed = api.server.close(5000);
    const response = await answer;
    expect(await jsonOf(response)).toMatchObject({ data: { events: ['aborted'] } });
    expect(response.headers.get('connection')).toBe('close');
    await closed;
  });
});

describe('closing', () => {
  it('answers requests on open connections with 503 and Retry-After', async () => {
    api = await startApi();
    const socket = connect(api.port, '127.0.0.1');
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk.toString();
    });
    const ended = new Promise<void>((resolve) => socket.on('close', () => resolve()));
    await new Promise<void>((resolve) =>
      socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\n', () => resolve()),
    );
    // Connections are taken in order: when this one is answered, the other has been taken.
    expect((await fetch(`${api.base}/healthz`)).status).toBe(200);

    const closed = api.server.close(5000);
    socket.write('\r\n');
    await Promise.all([ended, closed]);
    expect(text).toMatch(/^HTTP\/1\.1 503 /);
    expect(text).toMatch(/\r\nRetry-After: \d+\r\n/);
    expect(text).toContain('"reasonCode":"UNAVAILABLE"');
    await expect(fetch(`${api.base}/healthz`)).rejects.toThrow();
  });

  it('closes connections after the grace period', async () => {
    const started = gate();
    const stuck = route('GET /web-setup/stuck', {
      operationId: 'stuck',
      summary: 'Never ends',
      handle: () => {
        started.open();
        return new Promise<never>(() => {});
      },
    });
    api = await startApi({ routes: [stuck] });
    const answer = fetch(`${api.base}/web-setup/stuck`, { headers: api.as('setup') });
    const failed = expect(answer).rejects.toThrow();
    await started.opened;
    await api.server.close(100);
    await failed;
  });

  it('may be repeated, and may precede listen', async () => {
    api = await startApi();
    await api.server.close(0);
    await api.server.close(0);
    expect(api.server.address()).toBeNull();
  });
});

it('rejects an address that is in use', async () => {
  api = await startApi();
  await expect(startApi({ api: { listen: `127.0.0.1:${api.port}` } })).rejects.toThrow(
    'is in use by another program',
  );
});

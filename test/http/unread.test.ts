import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { connect, Socket } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import * as z from 'zod';
import { routesOf } from '../../src/http/route.ts';
import { staticPage } from '../../src/http/static-page.ts';
import { type Api, exchange, startApi } from './harness.ts';
import { sampleRoutes } from './sample-routes.ts';

const route = routesOf({ tag: 'Things', scope: 'setup' });

let api: Api;
/** The sockets of the server. */
let accepted: Socket[] = [];
const accept = (message: unknown) => {
  if (
    message !== null &&
    typeof message === 'object' &&
    'socket' in message &&
    message.socket instanceof Socket
  )
    accepted.push(message.socket);
};
const open = () => accepted.filter((socket) => socket.localPort === api.port && !socket.destroyed);

beforeEach(() => {
  accepted = [];
  subscribe('net.server.socket', accept);
});
afterEach(async () => {
  unsubscribe('net.server.socket', accept);
  await api.stop();
});

/** An operation whose response is large, and that counts its calls. */
function largeRoute(bytes: number) {
  const calls: number[] = [];
  const large = route('GET /web-setup/large', {
    operationId: 'large',
    summary: 'Is large',
    response: { description: 'It.', data: z.object({ text: z.string() }) },
    handle: () => {
      calls.push(calls.length);
      return { text: 'x'.repeat(bytes) };
    },
  });
  return { calls, large };
}

/** A connection that sends but does not read. */
function sendOnly(text: string): { socket: Socket; isClosed(): boolean } {
  let closed = false;
  const socket = connect(api.port, '127.0.0.1', () => socket.write(text));
  socket.pause();
  socket.on('close', () => {
    closed = true;
  });
  // A reset during a write causes an error before the close.
  socket.on('error', () => undefined);
  onTestFinished(() => void socket.destroy());
  return { socket, isClosed: () => closed };
}

const get = (path: string) =>
  `GET ${path} HTTP/1.1\r\nHost: x\r\nX-Api-Key: ${api.secrets.setup}\r\nX-Id: ${api.account.accountId}\r\n\r\n`;

describe('a client that reads no responses', () => {
  it('occupies memory for one response when it pipelines requests', async () => {
    const { calls, large } = largeRoute(8_000_000);
    api = await startApi({ routes: [large] });
    const { socket } = sendOnly(get('/web-setup/large').repeat(20));
    await expect.poll(() => calls.length).toBe(1);
    for (let n = 0; n < 20; n++) await new Promise((resolve) => setTimeout(resolve, 10));
    expect(calls).toHaveLength(1);
    // When it reads, it gets all of them.
    socket.resume();
    await expect.poll(() => calls.length).toBe(20);
  });

  it('is disconnected when it has stopped reading for a time', async () => {
    const { large } = largeRoute(40_000_000);
    const connectionLimits = { checkMs: 50, writeStallMs: 5000 };
    api = await startApi({ routes: [large], options: { connectionLimits } });
    sendOnly(get('/web-setup/large'));
    await expect.poll(() => open().length).toBe(1);
    const slow = sendOnly(get('/web-setup/large'));
    await expect.poll(() => open().length).toBe(2);
    const [stalled, read] = open();
    slow.socket.on('readable', () => undefined);
    // Not everything, so that it is still reading when the other has been stalled for long enough, also on a slow machine.
    const reading = setInterval(() => slow.socket.bytesRead < 30_000_000 && slow.socket.read(), 20);
    onTestFinished(() => clearInterval(reading));
    await expect.poll(() => stalled?.destroyed).toBe(true);
    expect(slow.socket.bytesRead).toBeGreaterThan(0);
    expect(slow.socket.bytesRead).toBeLessThan(40_000_000);
    expect(read?.destroyed).toBe(false);
  });

  it('is neither read nor answered when it pipelines too many requests, and is disconnected later', async () => {
    const { calls, large } = largeRoute(8_000_000);
    api = await startApi({ routes: [large], options: { pipelining: { abandonedMs: 500 } } });
    const { socket } = sendOnly(get('/web-setup/large').repeat(100));
    await expect.poll(() => calls.length).toBe(1);
    const [abandoned] = open();
    // The current response is written as the client reads it, but no further request is read.
    const sent = abandoned?.bytesRead ?? 0;
    expect(sent).toBeGreaterThan(0);
    socket.write(get('/web-setup/large').repeat(100));
    socket.resume();
    await expect.poll(() => open().length).toBe(0);
    expect(abandoned?.bytesRead).toBe(sent);
    expect(calls).toHaveLength(1);
  });
});

describe('pipelined requests', () => {
  it('are answered in order', async () => {
    api = await startApi({ routes: sampleRoutes });
    const last = get('/web-setup/things/c').replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n');
    const answer = await exchange(
      api.port,
      get('/web-setup/things/a') + get('/web-setup/things/b') + get('/nowhere') + last,
    );
    expect(answer.match(/"thingId":"(.)"|NOT_FOUND/g)).toEqual([
      '"thingId":"a"',
      '"thingId":"b"',
      'NOT_FOUND',
      'NOT_FOUND',
      '"thingId":"c"',
    ]);
  });
});

describe('the documents', () => {
  it.each(['/openapi.json', '/docs', '/docs/operations'])('%s are compressed and validated', async (path) => {
    api = await startApi({ routes: sampleRoutes });
    const plain = await fetch(`${api.base}${path}`, { headers: { 'Accept-Encoding': 'identity' } });
    expect([plain.status, plain.headers.get('content-encoding')]).toEqual([200, null]);
    const text = await plain.text();
    const packed = await exchange(
      api.port,
      `GET ${path} HTTP/1.1\r\nHost: x\r\nAccept-Encoding: br, gzip;q=0.8\r\nConnection: close\r\n\r\n`,
    );
    expect(packed).toMatch(/\r\nContent-Encoding: gzip\r\n/);
    const body = Buffer.from(packed.slice(packed.indexOf('\r\n\r\n') + 4), 'latin1');
    expect(gunzipSync(body).toString()).toBe(text);
    expect(body.length).toBeLessThan(text.length / 2);

    const etag = plain.headers.get('etag') ?? '';
    const again = await fetch(`${api.base}${path}`, {
      headers: { 'Accept-Encoding': 'identity', 'If-None-Match': `"other", W/${etag}` },
    });
    expect([again.status, await again.text(), again.headers.get('etag')]).toEqual([304, '', etag]);
  });

  it('are one buffer for all responses', async () => {
    const visit = staticPage('text/plain', async () => 'text '.repeat(1000));
    const bodyFor = async (encoding: string) => {
      const { body } = await visit({
        from: { address: '127.0.0.1', forwarded: false },
        params: {},
        query: new URLSearchParams(),
        headers: { 'accept-encoding': encoding },
        requestId: 'r',
      });
      return body;
    };
    expect(await bodyFor('gzip')).toBe(await bodyFor('gzip, br'));
    expect(await bodyFor('identity')).toBe(await bodyFor('gzip;q=0'));
    expect(await bodyFor('identity')).not.toBe(await bodyFor('*'));
  });
});

describe('connections of one address', () => {
  it('have a higher limit for local clients', async () => {
    api = await startApi({ routes: sampleRoutes, api: { connectionsPerAddress: 2 } });
    for (let n = 0; n < 5; n++) sendOnly('');
    await expect.poll(() => open().length).toBe(5);
  });

  it('are limited, except for trusted proxies', async () => {
    // 127.0.0.1 is a local client, so the test sets the limit of the listener.
    api = await startApi({
      routes: sampleRoutes,
      options: { connectionLimits: { ofOneCaller: () => 2 } },
    });
    for (let n = 0; n < 5; n++) sendOnly('');
    await expect.poll(() => open().length).toBe(2);
  });
});

it('limits concurrent responses of a large page without a key', async () => {
  // The document is larger than the buffers of a connection.
  api = await startApi({ routes: [{ ...largeRoute(1).large, description: 'x'.repeat(8_000_000) }] });
  const readers = Array.from({ length: 16 }, () =>
    sendOnly('GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'.repeat(30)),
  );
  const page = () => fetch(`http://127.0.0.1:${api.port}/openapi.json`);
  await expect.poll(async () => (await page()).status).toBe(503);
  expect((await page()).headers.get('retry-after')).toBe('1');
  for (const { socket } of readers) socket.destroy();
  await expect.poll(async () => (await page()).status).toBe(200);
});

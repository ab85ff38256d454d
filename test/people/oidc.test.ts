import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { systemRandom } from '../../src/core/random.ts';
import { createResolver } from '../../src/dns/resolver.ts';
import { createProviderHttp } from '../../src/people/oidc.ts';

const CLOCK = { now: Date.now };

function startHttp() {
  // No test looks up a name.
  const resolver = createResolver({
    resolvers: ['127.0.0.1:1'],
    timeoutMs: 1000,
    monotonic: CLOCK,
    random: systemRandom,
  });
  const http = createProviderHttp(resolver);
  onTestFinished(async () => {
    await http.close();
    resolver.close();
  });
  const get = (url: string) =>
    http.fetch(url, { method: 'GET', headers: {}, body: undefined, redirect: 'manual' });
  return { ...http, get };
}

async function startServer(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  // Sound: the server listens on a port.
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

it('returns status, header and body, also without a body', async () => {
  const base = await startServer((req, res) => {
    if (req.url === '/none') res.writeHead(204).end();
    else res.writeHead(400, { 'Content-Type': 'application/json' }).end('{"error":"x"}');
  });
  const { get } = startHttp();
  const response = await get(`${base}/token`);
  expect([response.status, response.headers.get('content-type'), await response.json()]).toEqual([
    400,
    'application/json',
    { error: 'x' },
  ]);
  expect((await get(`${base}/none`)).status).toBe(204);
});

it('ends a response that does not end', async () => {
  let sent = 0;
  let onClosed = () => {};
  const closed = new Promise<void>((resolve) => {
    onClosed = resolve;
  });
  const base = await startServer((_, res) => {
    const more = () => {
      while (!res.destroyed && res.write(Buffer.alloc(64 * 1024, 0x20))) sent += 64 * 1024;
    };
    res.on('drain', more).on('close', onClosed);
    more();
  });
  await expect(startHttp().get(base)).rejects.toMatchObject({ code: 'UND_ERR_RES_EXCEEDED_MAX_SIZE' });
  await closed;
  // One MiB, and what the buffers of both sides hold.
  expect(sent).toBeLessThan(32 * 1024 * 1024);
});

it('follows no redirect', async () => {
  const base = await startServer((_, res) => res.writeHead(302, { Location: 'http://127.0.0.1:1/' }).end());
  expect((await startHttp().get(base)).status).toBe(302);
});

it.each(['http://192.0.2.1/token', 'http://login.example.net/token'])('never calls %s', async (url) => {
  await expect(startHttp().get(url)).rejects.toThrow('must have https');
});

it.each(['https://169.254.169.254/latest', 'https://[::ffff:169.254.169.254]/', 'https://[fe80::1]/'])(
  'never calls %s',
  async (url) => {
    await expect(startHttp().get(url)).rejects.toMatchObject({ name: 'ForbiddenAddress' });
  },
);

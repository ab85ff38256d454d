import { afterEach, describe, expect, it } from 'vitest';
import { createHostCheck } from '../../src/http/allowed-hosts.ts';
import { type Api, exchange, startApi } from './harness.ts';
import { sampleRoutes } from './sample-routes.ts';

describe('createHostCheck', () => {
  const isAllowed = createHostCheck({
    hostname: 'mail.example.net',
    hosts: ['api.example.com', '*.internal.example.com'],
  });

  it.each([
    'localhost',
    'localhost:8080',
    'LOCALHOST',
    'api.localhost',
    '127.0.0.1:8080',
    '[::1]:8080',
    '[::1]',
    '192.168.1.5',
    '10.0.0.2:80',
    'postrider:8080',
    'mail.example.net',
    'Mail.Example.NET.',
    'api.example.com:443',
    'a.internal.example.com',
    'a.b.internal.example.com',
    '',
  ])('allows "%s"', (host) => expect(isAllowed(host)).toBe(true));

  it.each([
    'evil.example',
    'evil.example:8080',
    'example.com',
    'xapi.example.com',
    'internal.example.com',
    'evilinternal.example.com',
    '127.0.0.1.nip.io',
    'localhost.evil.example',
    'evil.example/localhost',
    'user@localhost',
    '127.0.0.1, evil.example',
  ])('rejects "%s"', (host) => expect(isAllowed(host)).toBe(false));
});

describe('a request with another name in Host', () => {
  let api: Api;
  afterEach(() => api.stop());
  const get = (host: string, path = '/metrics', more = '') =>
    exchange(api.port, `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n${more}Connection: close\r\n\r\n`);

  it('is refused on every path, with the names of the settings', async () => {
    api = await startApi({ routes: sampleRoutes });
    for (const path of ['/metrics', '/healthz', '/docs', '/web-setup/things/one', '/nowhere']) {
      const answer = await get('rebound.evil.example', path);
      expect(answer).toMatch(/^HTTP\/1\.1 421 /);
      expect(answer).toContain('"HOST_NOT_ALLOWED"');
      expect(answer).toContain('api.hosts');
      expect(answer).toContain('rebound.evil.example');
    }
    expect(await get('127.0.0.1:1')).toMatch(/^HTTP\/1\.1 200 /);
  });

  it('is served if api.hosts has the name', async () => {
    api = await startApi({ routes: sampleRoutes, api: { hosts: ['api.example.com'] } });
    expect(await get('api.example.com')).toMatch(/^HTTP\/1\.1 200 /);
    expect(await get('mail.example.net')).toMatch(/^HTTP\/1\.1 200 /);
  });

  it('is served from a trusted proxy, which no header can claim', async () => {
    const forwarded = 'X-Forwarded-For: 198.51.100.7\r\nX-Forwarded-Host: localhost\r\n';
    api = await startApi({ routes: sampleRoutes });
    expect(await get('shop.example.com', '/healthz', forwarded)).toMatch(/^HTTP\/1\.1 421 /);
    await api.stop();
    api = await startApi({ routes: sampleRoutes, api: { trustedProxies: ['127.0.0.1'] } });
    expect(await get('shop.example.com', '/healthz', forwarded)).toMatch(/^HTTP\/1\.1 200 /);
    // A direct request of this machine, of a page whose name was made to resolve to it.
    expect(await get('shop.example.com', '/healthz')).toMatch(/^HTTP\/1\.1 421 /);
  });
});

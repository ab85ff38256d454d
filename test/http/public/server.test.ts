import { connect } from 'node:net';
import { Registry } from 'prom-client';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createLog } from '../../../src/core/log.ts';
import { createPublicServer } from '../../../src/http/public/server.ts';
import { exchange } from '../harness.ts';
import { FORM, ONE_CLICK, startPublic } from './rig.ts';

describe('every response', () => {
  it.each([
    ['/', 200],
    ['/robots.txt', 200],
    ['/favicon.ico', 404],
    ['/u/abc', 404],
    ['/r/abc', 404],
    ['/c/abc', 404],
    ['/o/abc.gif', 200],
    ['/u', 404],
    ['/u/', 404],
    ['/u/a/b', 404],
    ['/admin', 404],
    ['/web-setup/health', 404],
  ])('%s: %s, not indexed, not cached, without Referer', async (path, status) => {
    const { call } = await startPublic();
    const answer = await call(path);
    expect(answer.status).toBe(status);
    expect(answer.headers).toMatchObject({
      'x-robots-tag': 'noindex, nofollow',
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
    });
    expect(answer.headers['set-cookie']).toBeUndefined();
    expect(answer.headers['x-powered-by']).toBeUndefined();
  });

  it('is the same for HEAD, without the body', async () => {
    const { call, tokens, sent } = await startPublic();
    for (const path of [
      '/',
      '/u/abc',
      `/u/${tokens.of('acct_one').unsubscribeUrl(sent().mail)}`,
      '/o/x.gif',
    ]) {
      const get = await call(path);
      const head = await call(path, { method: 'HEAD' });
      expect([head.status, head.body, head.headers['content-length']]).toEqual([
        get.status,
        '',
        String(get.bytes.length),
      ]);
    }
  });

  it('is 413 for too many header fields, of which Node drops the last ones', async () => {
    const { side } = await startPublic();
    const get = (fields: number) =>
      exchange(
        side.address()?.port ?? 0,
        `GET /robots.txt HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${'A: b\r\n'.repeat(fields)}\r\n`,
      );
    expect(await get(98)).toMatch(/^HTTP\/1.1 200 /);
    expect(await get(99)).toMatch(/^HTTP\/1.1 413 /);
  });

  it('is the same for an absolute request target', async () => {
    const { side, tokens, sent } = await startPublic();
    const path = `/u/${tokens.of('acct_one').unsubscribeUrl(sent().mail)}`;
    const head = `GET http://link.example.com${path}?x=1 HTTP/1.1\r\nHost: link.example.com\r\nConnection: close\r\n\r\n`;
    expect(await exchange(side.address()?.port ?? 0, head)).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*Unsubscribe/);
  });

  it('is the same under every host name of the account and the platform', async () => {
    const { call, tokens, sent } = await startPublic();
    const path = `/u/${tokens.of('acct_one').unsubscribeUrl(sent().mail)}`;
    const bodies = new Set<string>();
    for (const Host of ['link.example.com', 'localhost'])
      bodies.add((await call(path, { headers: { Host } })).body);
    expect(bodies.size).toBe(1);
  });
});

describe('a page', () => {
  it('has no script, loads nothing, and cannot be framed', async () => {
    const { call, tokens, sent } = await startPublic();
    for (const path of [
      '/',
      '/u/abc',
      `/u/${tokens.of('acct_one').unsubscribeUrl(sent().mail)}`,
      `/r/${tokens.of('acct_one').reportUrl(sent().mail)}`,
    ]) {
      const { headers, body } = await call(path);
      expect(headers['content-type']).toBe('text/html; charset=utf-8');
      expect(headers['content-security-policy']).toMatch(
        /^default-src 'none'; style-src 'sha256-[A-Za-z0-9+/]{43}='; form-action 'self'; base-uri 'none'; frame-ancestors 'none'$/,
      );
      expect(headers['x-frame-options']).toBe('DENY');
      expect(body).toMatch(/^<!doctype html>\n<html lang="en">/);
      expect(body).not.toMatch(/<script|<img|<link|<iframe|\bsrc=|\bhref=|url\(|@import|\son\w+=/i);
    }
  });
});

describe('invalid requests', () => {
  it.each([
    ['POST', '/c/abc', 'GET, HEAD'],
    ['POST', '/o/abc.gif', 'GET, HEAD'],
    ['DELETE', '/u/abc', 'GET, HEAD, POST'],
    ['PUT', '/r/abc', 'GET, HEAD, POST'],
    ['OPTIONS', '/u/abc', 'GET, HEAD, POST'],
    ['POST', '/', 'GET, HEAD'],
    ['PROPFIND', '/elsewhere', 'GET, HEAD'],
  ])('%s %s gets 405', async (method, path, allow) => {
    const { call } = await startPublic();
    const { status, headers } = await call(path, { method });
    expect([status, headers['allow']]).toEqual([405, allow]);
  });

  it('a large body is refused before it is read', async () => {
    const { call, tokens, sent, suppressions } = await startPublic();
    const { mail } = sent({ use_case: 'mk' });
    const path = `/u/${tokens.of('acct_one').unsubscribeUrl(mail)}`;
    const body = `List-Unsubscribe=One-Click&x=${'x'.repeat(20_000)}`;
    expect((await call(path, { method: 'POST', headers: FORM, body })).status).toBe(413);
    const chunked = { ...FORM, 'Transfer-Encoding': 'chunked' };
    expect((await call(path, { method: 'POST', headers: chunked, body })).status).toBe(413);
    expect(suppressions(mail)).toEqual([]);
  });

  it('an error page contains no details', async () => {
    const { call, tokens, sent, writer } = await startPublic();
    const path = `/u/${tokens.of('acct_one').unsubscribeUrl(sent().mail)}`;
    await writer.close();
    const { status, headers, body } = await call(path, ONE_CLICK);
    expect([status, headers['retry-after']]).toEqual([503, '60']);
    expect(body).toContain('Nothing was changed');
    expect(body).not.toMatch(/database|closing|Error/);
  });
});

describe('a large response', () => {
  it('goes on for a client that reads slowly, and ends for one that reads nothing', async () => {
    const bytes = 40_000_000;
    const calls: string[] = [];
    const closed: string[] = [];
    const server = createPublicServer({
      config: { listen: '127.0.0.1:0', trustedProxies: [] },
      log: createLog({ level: 'silent', hashAddresses: true }),
      registry: new Registry(),
      routes: [
        {
          name: 'x',
          methods: ['GET'],
          handle: ({ token }) => {
            calls.push(token);
            const onClosed = () => void closed.push(token);
            return { status: 200, headers: {}, body: Buffer.alloc(bytes), onClosed };
          },
        },
      ],
      limits: { checkMs: 50, writeStallMs: 3000 },
    });
    await server.listen();
    onTestFinished(() => server.close(0));
    const get = (token: string) => {
      const socket = connect(server.address()?.port ?? 0, '127.0.0.1');
      socket.on('error', () => undefined).write(`GET /x/${token} HTTP/1.1\r\nHost: x\r\n\r\n`);
      onTestFinished(() => void socket.destroy());
      return socket;
    };
    const slow = get('slow');
    await expect.poll(() => calls).toEqual(['slow']);
    slow.on('readable', () => undefined);
    const reading = setInterval(() => slow.bytesRead < bytes / 2 && slow.read(), 20);
    onTestFinished(() => clearInterval(reading));
    get('stalled');
    await expect.poll(() => closed).toEqual(['stalled']);
    clearInterval(reading);
    slow.removeAllListeners('readable').resume();
    await expect.poll(() => slow.bytesRead).toBeGreaterThan(bytes);
  });
});

describe('a visitor behind a proxy', () => {
  const xff = { 'X-Forwarded-For': '203.0.113.9' };

  it.each([
    [{ POSTRIDER_PUBLIC__TRUSTEDPROXIES: '["127.0.0.1"]' }, '203.0.113.9'],
    [{}, '127.0.0.1'],
  ])('%j: %s', async (settings, ip) => {
    const { call, clickUrl, sent, settle, events } = await startPublic(settings);
    await call(clickUrl(sent().message.message_id, 'https://x.example/'), { headers: xff });
    await settle();
    expect(events()).toMatchObject([{ event: 'email_clicked', ip }]);
  });
});

describe('connections', () => {
  it.each([
    ['text that is not HTTP', 'hello\r\n\r\n'],
    ['TLS', '\u0016\u0003\u0001\u0002\u0000\u0001'],
    ['an endless header', `GET / HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(40_000)}`],
    ['two lengths', 'POST /u/x HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n'],
  ])('%s: closed', async (_, sent) => {
    const { side } = await startPublic();
    expect((await exchange(side.address()?.port ?? 0, sent)).split('\r\n')[0]).toBe(
      'HTTP/1.1 400 Bad Request',
    );
  });

  it.each([
    ['a header', 'GET / HTTP/1.1\r\nHost: x\r\nX-Slow: '],
    ['a body', 'POST /u/x HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nList'],
  ])('are closed when they send %s slowly', async (_, head) => {
    const server = createPublicServer({
      config: { listen: '127.0.0.1:0', trustedProxies: [] },
      log: createLog({ level: 'silent', hashAddresses: true }),
      registry: new Registry(),
      routes: [{ name: 'u', methods: ['POST'], handle: () => ({ status: 200, headers: {}, body: '' }) }],
      limits: { headersMs: 200, requestMs: 400, checkMs: 50 },
    });
    await server.listen();
    onTestFinished(() => server.close(0));
    const socket = connect(server.address()?.port ?? 0, '127.0.0.1', () => socket.write(head));
    const drip = setInterval(() => socket.writable && socket.write('x'), 20);
    await new Promise<void>((resolve) => {
      socket.on('error', () => undefined);
      socket.on('close', () => resolve());
      socket.resume();
    });
    clearInterval(drip);
  });

  it.each([
    ['nothing, without a response', '', ''],
    ['a part of a request, with 400', 'GET / HT', 'HTTP/1.1 400 Bad Request\r\n'],
  ])('are closed when they have sent %s', async (_, sent, response) => {
    const server = createPublicServer({
      config: { listen: '127.0.0.1:0', trustedProxies: [] },
      log: createLog({ level: 'silent', hashAddresses: true }),
      registry: new Registry(),
      routes: [],
      limits: { headersMs: 200, requestMs: 400, checkMs: 50 },
    });
    await server.listen();
    onTestFinished(() => server.close(0));
    const socket = connect(server.address()?.port ?? 0, '127.0.0.1', () => socket.write(sent));
    let received = '';
    for await (const chunk of socket) received += String(chunk);
    expect(received.slice(0, response.length || undefined)).toBe(response);
  });

  it('are counted by route and status', async () => {
    const { call, registry } = await startPublic();
    await call('/c/abc');
    await call('/whatever');
    const text = await registry.metrics();
    expect(text).toContain('postrider_public_answers_total{place="c",status="404"} 1');
    expect(text).toContain('postrider_public_answers_total{place="other",status="404"} 1');
  });
});

import { setMaxListeners } from 'node:events';
import { createServer } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { monotonicClock } from '../../src/core/clock.ts';
import { systemRandom } from '../../src/core/random.ts';
import { createResolver } from '../../src/dns/resolver.ts';
import { type CallResult, createWebhookCaller } from '../../src/webhooks/call.ts';
import { createAuthority } from '../support/certificates.ts';
import { startDnsServer } from '../support/dns-server.ts';
import { portOf } from '../support/https-client.ts';
import { PATIENCE_MS } from '../support/patience.ts';
import { startEndpoint } from '../support/webhook-endpoint.ts';

interface Options {
  allowPrivateNetworks?: boolean;
  ownPorts?: () => ReadonlySet<number>;
  timeoutMs?: number;
  dnsTimeoutMs?: number;
  trusted?: string;
}

async function start({
  allowPrivateNetworks = true,
  timeoutMs = PATIENCE_MS,
  dnsTimeoutMs = PATIENCE_MS,
  trusted,
  ownPorts,
}: Options = {}) {
  const dns = await startDnsServer();
  const resolver = createResolver({
    resolvers: [dns.address],
    timeoutMs: dnsTimeoutMs,
    monotonic: monotonicClock,
    random: systemRandom,
  });
  const caller = createWebhookCaller({
    resolver,
    allowPrivateNetworks: () => allowPrivateNetworks,
    timeoutMs,
    trusted,
    ...(ownPorts === undefined ? {} : { ownPorts }),
    userAgent: 'Postrider/1.2.3',
  });
  onTestFinished(async () => {
    await caller.close();
    resolver.close();
    await dns.close();
  });
  const call = (url: string, signal = new AbortController().signal, accountId = 'acct_test') =>
    caller.call({ accountId, url, headers: { 'webhook-id': 'evt_1' }, body: '{"id":"evt_1"}' }, signal);
  return { dns, call };
}

/** A server that begins its response so, then repeats a text until the connection is closed. Returns its URL. */
async function startEndless(beginning: string, repeated: string): Promise<string> {
  const chunk = repeated.repeat(Math.ceil(65_536 / repeated.length));
  const server = createServer((socket) => {
    const more = () => {
      while (!socket.destroyed && socket.write(chunk));
    };
    socket.once('data', () => {
      socket.write(beginning);
      more();
    });
    socket.on('drain', more).on('error', () => {
      // The caller closes the connection.
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${portOf(server)}/`;
}

function reasonOf(result: CallResult | null): string {
  if (result?.kind !== 'no-response') throw new Error(`there was a response: ${JSON.stringify(result)}`);
  return result.reason;
}

describe('a call', () => {
  it('is a POST of the body with its headers', async () => {
    const endpoint = await startEndpoint(() => ({ status: 202, body: 'thanks' }));
    const { call } = await start();
    expect(await call(endpoint.url)).toEqual({
      kind: 'response',
      status: 202,
      body: 'thanks',
      retryAfter: undefined,
    });
    expect(endpoint.received).toEqual([
      {
        path: '/hooks?of=test',
        body: '{"id":"evt_1"}',
        json: { id: 'evt_1' },
        headers: expect.objectContaining({
          host: `127.0.0.1:${endpoint.port}`,
          'content-type': 'application/json',
          'content-length': '14',
          'user-agent': 'Postrider/1.2.3',
          'webhook-id': 'evt_1',
        }),
      },
    ]);
  });

  it('returns the Retry-After of the endpoint', async () => {
    const endpoint = await startEndpoint(() => ({ status: 503, headers: { 'retry-after': '120' } }));
    const { call } = await start();
    expect(await call(endpoint.url)).toMatchObject({ status: 503, retryAfter: '120' });
  });

  it('follows no redirect', async () => {
    const elsewhere = await startEndpoint();
    const endpoint = await startEndpoint(() => ({ status: 307, headers: { location: elsewhere.url } }));
    const { call } = await start();
    expect(await call(endpoint.url)).toMatchObject({ kind: 'response', status: 307 });
    expect(elsewhere.received).toEqual([]);
  });

  it.each([
    ['nothing', '', ''],
    ['1 KiB', 'x'.repeat(1024), 'x'.repeat(1024)],
    ['more', `${'x'.repeat(1024)}and more`, 'x'.repeat(1024)],
    ['a character across the cut', `${'x'.repeat(1023)}é`, 'x'.repeat(1023)],
    ['megabytes', 'x'.repeat(5_000_000), 'x'.repeat(1024)],
    ['control characters', '\u0000\u0001', '\u0000\u0001'],
  ])('stores the beginning of the response: %s', async (_, body, kept) => {
    const endpoint = await startEndpoint(() => ({ status: 200, body }));
    const { call } = await start();
    expect(await call(endpoint.url)).toMatchObject({ kind: 'response', status: 200, body: kept });
    // The connection that was closed affects no later call.
    expect(await call(endpoint.url)).toMatchObject({ kind: 'response', status: 200, body: kept });
  });

  it('accepts a response whose body is incomplete', async () => {
    const endpoint = await startEndpoint((_, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('begun', () => response.destroy());
      return 'nothing';
    });
    const { call } = await start();
    expect(await call(endpoint.url)).toMatchObject({ kind: 'response', status: 200, body: 'begun' });
    const impatient = await start({ timeoutMs: 3000 });
    endpoint.answer((_, response) => {
      response.writeHead(200);
      response.write('begun');
      return 'nothing';
    });
    expect(await impatient.call(endpoint.url)).toMatchObject({
      kind: 'response',
      status: 200,
      body: 'begun',
    });
  });

  it('does not read a response without an end', async () => {
    const endpoint = await startEndpoint((_, response) => {
      const more = () => {
        while (!response.destroyed && response.write('x'.repeat(16_384)));
      };
      response.writeHead(200).on('drain', more);
      more();
      return 'nothing';
    });
    const { call } = await start({ timeoutMs: PATIENCE_MS });
    expect(await call(endpoint.url)).toMatchObject({ kind: 'response', status: 200, body: 'x'.repeat(1024) });
  });

  it.each([
    ['interim responses', '', 'HTTP/1.1 103 Early Hints\r\n\r\n'],
    ['empty lines', '', '\r\n'],
    ['a reason phrase', 'HTTP/1.1 200 ', 'x'],
  ])('ends a response that consists of %s without end', async (_, beginning, repeated) => {
    const url = await startEndless(beginning, repeated);
    const { call } = await start({ timeoutMs: PATIENCE_MS });
    expect(reasonOf(await call(url))).toBe('the response is too large');
  });

  it.each([
    ['a chunk extension', '1;', 'x'],
    ['the size of a chunk', '', '0'],
  ])('does not read %s without end', async (_, beginning, repeated) => {
    const header = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n';
    const url = await startEndless(header + beginning, repeated);
    const { call } = await start({ timeoutMs: PATIENCE_MS });
    expect(await call(url)).toMatchObject({ kind: 'response', status: 200 });
  });

  it('limits each response, not the connection', async () => {
    const connections = new Set<unknown>();
    const endpoint = await startEndpoint((_, { socket }) => {
      connections.add(socket);
      return { status: 200, body: 'x'.repeat(60_000) };
    });
    const { call } = await start();
    for (let times = 0; times < 20; times++) expect(await call(endpoint.url)).toMatchObject({ status: 200 });
    // The client uses one or two, each for more than 256 KiB.
    expect(connections.size).toBeLessThan(5);
  });

  it('times out without a response', async () => {
    const endpoint = await startEndpoint(() => 'nothing');
    const { call } = await start({ timeoutMs: 1000 });
    expect(reasonOf(await call(endpoint.url))).toBe('no response within 1 s');
    expect(endpoint.received).toHaveLength(1);
  });

  it('ends when it is aborted', async () => {
    const abort = new AbortController();
    const endpoint = await startEndpoint(() => {
      abort.abort();
      return 'nothing';
    });
    const { call } = await start();
    expect(await call(endpoint.url, abort.signal)).toBe(null);
    expect(await call(endpoint.url, AbortSignal.abort())).toBe(null);
    expect(endpoint.received).toHaveLength(1);
  });

  it('fails where nothing listens, and where the server does not use HTTP', async () => {
    const endpoint = await startEndpoint();
    const { call } = await start();
    expect(reasonOf(await call(`http://127.0.0.1:1/`))).toBe('the connection was refused');
    expect(reasonOf(await call(`https://127.0.0.1:${endpoint.port}/`))).toBe('the TLS handshake failed');
    const notHttp = createServer((socket) => socket.end('220 mail.example ESMTP\r\n'));
    await new Promise<void>((resolve) => notHttp.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void notHttp.close());
    expect(reasonOf(await call(`http://127.0.0.1:${portOf(notHttp)}/`))).toBe(
      'the response is not valid HTTP',
    );
  });

  it('limits the header of a response', async () => {
    const endpoint = await startEndpoint(() => ({ status: 200, headers: { 'x-long': 'x'.repeat(20_000) } }));
    const { call } = await start();
    expect(reasonOf(await call(endpoint.url))).toBe('the header of the response is too large');
  });
});

describe('a name', () => {
  it('is resolved by the configured resolver and sent as Host', async () => {
    const endpoint = await startEndpoint();
    const { call, dns } = await start();
    dns.set('receiver.test', 'A', ['127.0.0.1']);
    expect(await call(`http://receiver.test:${endpoint.port}/`)).toMatchObject({ status: 200 });
    expect(endpoint.received[0]?.headers.host).toBe(`receiver.test:${endpoint.port}`);
    expect(dns.asked('receiver.test')).toBeGreaterThan(0);
  });

  it('that is never answered delays the calls of its account only', async () => {
    const endpoint = await startEndpoint();
    const { call, dns } = await start({ timeoutMs: 10_000 });
    dns.set('*', '*', 'silent');
    dns.set('receiver.test', 'A', ['127.0.0.1']);
    const { signal } = new AbortController();
    setMaxListeners(0, signal);
    const silent = Array.from({ length: 140 }, (_, n) =>
      call(`http://h${n}.silent.test/`, signal, 'acct_silent'),
    );
    expect(await call(`http://receiver.test:${endpoint.port}/`)).toMatchObject({ status: 200 });
    expect(new Set((await Promise.all(silent)).map(reasonOf))).toEqual(new Set(['no response within 10 s']));
  });

  it('localhost is this machine, without a DNS query', async () => {
    const endpoint = await startEndpoint();
    const { call, dns } = await start();
    for (const host of ['localhost', 'LOCALHOST.', 'app.localhost'])
      expect(await call(`http://${host}:${endpoint.port}/`)).toMatchObject({ status: 200 });
    expect(dns.questions).toEqual([]);
  });

  it.each([
    ['that does not exist', 'NXDOMAIN', 'receiver.test does not exist in DNS'],
    ['without an address', 'NODATA', 'receiver.test has no address in DNS'],
    ['that cannot be looked up now', 'SERVFAIL', 'receiver.test could not be looked up in DNS'],
  ] as const)('%s gets no response', async (_, behavior, reason) => {
    const { call, dns } = await start();
    dns.set('receiver.test', '*', behavior);
    expect(reasonOf(await call('http://receiver.test/'))).toBe(reason);
  });
});

describe('a forbidden address', () => {
  it.each([
    ['169.254.169.254', true],
    ['fe80::1', true],
    ['fd00:ec2::254', true],
    ['::ffff:169.254.169.254', true],
    ['10.0.0.1', false],
    ['127.0.0.1', false],
    ['::1', false],
  ])(
    'is refused for a name that resolves to %s (private networks allowed: %s)',
    async (address, allowPrivateNetworks) => {
      const { call, dns } = await start({ allowPrivateNetworks });
      dns.set('receiver.test', address.includes(':') ? 'AAAA' : 'A', [address]);
      expect(reasonOf(await call('http://receiver.test:1/'))).toMatch(
        /^receiver\.test has no (public )?address that webhooks may call$/,
      );
    },
  );

  it.each([
    ['http://169.254.169.254/', true],
    ['http://2852039166/', true],
    ['http://0xa9fea9fe/', true],
    ['http://[::ffff:a9fe:a9fe]/', true],
    ['http://[64:ff9b::a9fe:a9fe]/', true],
    ['http://127.0.0.1:1/', false],
    ['http://2130706433:1/', false],
    ['http://0x7f.1:1/', false],
    ['http://127.1:1/', false],
    ['http://[::1]:1/', false],
    ['http://[::ffff:127.0.0.1]:1/', false],
    ['http://localhost:1/', false],
    ['http://0:1/', false],
  ])('%s (private networks allowed: %s)', async (url, allowPrivateNetworks) => {
    const { call } = await start({ allowPrivateNetworks });
    expect(reasonOf(await call(url))).toMatch(/has no (public )?address that webhooks may call$/);
  });

  it('is skipped where a name has other addresses', async () => {
    const endpoint = await startEndpoint();
    const { call, dns } = await start();
    dns.set('receiver.test', 'A', ['169.254.169.254', '127.0.0.1']);
    expect(await call(`http://receiver.test:${endpoint.port}/`)).toMatchObject({ status: 200 });
  });

  it('is checked on the DNS answer that the connection uses', async () => {
    const endpoint = await startEndpoint();
    const { call, dns } = await start();
    dns.set('receiver.test', 'A', { values: ['127.0.0.1'], ttl: 0 });
    expect(await call(`http://receiver.test:${endpoint.port}/`)).toMatchObject({ status: 200 });
    expect(dns.asked('receiver.test', 'A')).toBe(1);
  });
});

describe('the error that an account reads', () => {
  /** The same call to an open port and to a closed one. */
  async function outcomes(allowPrivateNetworks: boolean) {
    const endpoint = await startEndpoint();
    const { call, dns } = await start({ allowPrivateNetworks });
    dns.set('receiver.test', 'A', ['127.0.0.1']);
    const resultOf = async (url: string) => {
      const result = await call(url);
      return result?.kind === 'no-response' ? result.reason : result?.status;
    };
    return { resultOf, dns, open: endpoint.port, port: 1, received: endpoint.received };
  }

  it('is the same for all ports, names and addresses of private networks', async () => {
    const { resultOf, dns, open, port, received } = await outcomes(false);
    const reason = 'receiver.test has no public address that webhooks may call';
    expect(await resultOf(`http://receiver.test:${open}/`)).toBe(reason);
    expect(await resultOf(`http://receiver.test:${port}/`)).toBe(reason);
    for (const address of ['10.0.0.1', '169.254.169.254', '100.64.0.1']) {
      dns.set('receiver.test', 'A', [address]);
      expect(await resultOf('http://receiver.test/')).toBe(reason);
    }
    for (const behavior of ['NXDOMAIN', 'NODATA'] as const) {
      dns.set('receiver.test', '*', behavior);
      expect(await resultOf('http://receiver.test/')).toBe(reason);
    }
    expect(await resultOf(`http://127.0.0.1:${open}/`)).toBe(
      '127.0.0.1 has no public address that webhooks may call',
    );
    expect(received).toEqual([]);
  });

  it('contains no address where private networks may be called', async () => {
    const { resultOf, dns, open } = await outcomes(true);
    expect(await resultOf(`http://receiver.test:${open}/`)).toBe(200);
    expect(await resultOf('http://receiver.test:1/')).toBe('the connection was refused');
    dns.set('receiver.test', 'A', ['127.0.0.1', '127.0.0.2']);
    expect(await resultOf('http://receiver.test:1/')).toBe('the connection was refused');
  });

  it('does not name a resolver', async () => {
    const { call, dns } = await start({ dnsTimeoutMs: 1000 });
    for (const behavior of ['SERVFAIL', 'REFUSED', 'silent'] as const) {
      dns.set('receiver.test', '*', behavior);
      const result = await call('http://receiver.test/');
      expect(reasonOf(result)).toBe('receiver.test could not be looked up in DNS');
      expect(result).toMatchObject({ detail: expect.stringContaining('receiver.test') });
    }
  });

  it('is complete in the detail for the operator', async () => {
    const { call, dns } = await start({ allowPrivateNetworks: false });
    dns.set('receiver.test', 'A', ['10.0.0.1']);
    expect(await call('http://receiver.test/')).toMatchObject({
      detail: 'receiver.test has the address 10.0.0.1, which may not be called',
    });
  });
});

describe('TLS', () => {
  it('is verified against the name in the URL', async () => {
    const authority = createAuthority();
    const endpoint = await startEndpoint(200, authority.issue(['receiver.test']));
    const untrusting = await start();
    const trusting = await start({ trusted: authority.cert });
    for (const { dns } of [untrusting, trusting]) {
      dns.set('receiver.test', 'A', ['127.0.0.1']);
      dns.set('other.test', 'A', ['127.0.0.1']);
    }
    expect(reasonOf(await untrusting.call(`https://receiver.test:${endpoint.port}/`))).toBe(
      'the certificate is not trusted',
    );
    expect(await trusting.call(`https://receiver.test:${endpoint.port}/`)).toMatchObject({ status: 200 });
    expect(reasonOf(await trusting.call(`https://other.test:${endpoint.port}/`))).toBe(
      'the certificate is not valid for the host name',
    );
    expect(endpoint.received).toHaveLength(1);
  });
});

it('never calls a listener of the daemon itself, by whatever name or address', async () => {
  const own = new Set<number>();
  const { call, dns } = await start({ ownPorts: () => own });
  const port = Number(new URL((await startEndpoint()).url).port);
  dns.set('receiver.test', 'A', ['127.0.0.1']);
  const urls = ['localhost', '127.0.0.1', 'receiver.test', '0.0.0.0'].map(
    (host) => `http://${host}:${port}/`,
  );
  for (const url of urls) expect(await call(url)).toMatchObject({ kind: 'response' });
  own.add(port);
  const fresh = await start({ ownPorts: () => own });
  fresh.dns.set('receiver.test', 'A', ['127.0.0.1']);
  for (const url of urls) expect(await fresh.call(url)).toMatchObject({ kind: 'no-response' });
});

it('a call completes while calls of a hundred other accounts begin and end', async () => {
  let respond: (status: number) => void = () => {};
  const held = new Promise<number>((resolve) => {
    respond = resolve;
  });
  const endpoint = await startEndpoint(() => held);
  const { call } = await start();
  const first = call(endpoint.url, undefined, 'acct_first');
  await expect.poll(() => endpoint.received.length).toBe(1);
  endpoint.answer(204);
  for (let n = 0; n < 110; n++)
    expect(await call(endpoint.url, undefined, `acct_${n}`)).toMatchObject({ status: 204 });
  respond(200);
  expect(await first).toMatchObject({ status: 200 });
  expect(await call(endpoint.url, undefined, 'acct_first')).toMatchObject({ status: 204 });
});

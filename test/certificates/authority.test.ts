import { generateKeyPairSync } from 'node:crypto';
import type { RequestListener } from 'node:http';
import { createServer } from 'node:https';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createCertificateAuthority, RateLimitedError } from '../../src/certificates/authority.ts';
import { DnsError } from '../../src/dns/dns-error.ts';
import type { Resolver } from '../../src/dns/resolver.ts';
import { createAuthority } from '../support/certificates.ts';
import { freePort } from '../support/free-port.ts';
import { portOf } from '../support/https-client.ts';

/* Failures before an order exists. Tests in test/e2e place complete orders with a real authority. */
const trusted = createAuthority();

async function start(answer: RequestListener, options: { trusted?: string | null; host?: string } = {}) {
  const server = createServer(trusted.issue(['127.0.0.1', 'ca.example']), answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return client(`https://${options.host ?? '127.0.0.1'}:${portOf(server)}/dir`, options.trusted);
}

function client(directory: string, ca: string | null = trusted.cert) {
  const lookups: string[] = [];
  const resolver = {
    a: async (name: string) => {
      lookups.push(name);
      return { records: ['127.0.0.1'], ttl: 60, authenticated: false, name };
    },
    aaaa: async (name: string) => {
      throw new DnsError('ENODATA', `AAAA ${name}`, 'no such record');
    },
  } as Partial<Resolver> as Resolver; // nothing else is called
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const authority = createCertificateAuthority({
    directory,
    email: null,
    trusted: ca,
    userAgent: 'Postrider/test',
    resolver,
    accountKey: async () => key,
    publish: () => {},
    withdraw: () => {},
  });
  onTestFinished(() => authority.close());
  return { authority, lookups };
}

const failure = (work: Promise<unknown>) =>
  work.then(
    () => 'it succeeded',
    (error: unknown) => error,
  );

describe('a rate limit', () => {
  it.each([
    [429, '120', 120_000],
    [503, '7', 7000],
    [429, new Date(Date.now() + 3_600_000).toUTCString(), expect.closeTo(3_600_000, -5)],
    [429, 'soon', null],
    [429, undefined, null],
  ])(
    'of status %i with Retry-After %s rejects with the pause, without a retry',
    async (status, after, waitMs) => {
      let requests = 0;
      const { authority } = await start((_req, res) => {
        requests++;
        res.writeHead(status, after === undefined ? {} : { 'Retry-After': after }).end('{}');
      });
      const error = await failure(authority.obtain('a.example'));
      expect(error).toBeInstanceOf(RateLimitedError);
      expect(error).toMatchObject({ waitMs });
      expect(requests).toBe(1);
    },
  );
});

it.each([
  [
    429,
    'too many certificates (5) already issued for this exact set of identifiers in the last 168h0m0s',
    'name',
  ],
  [429, 'too many failed authorizations (5) for "a.example" in the last 1h0m0s, retry after 12:00', 'name'],
  [429, 'too many new orders (300) from this account in the last 3h0m0s', 'all'],
  [429, 'too many new registrations (10) from this IP address in the last 3h0m0s', 'all'],
  [503, 'Service busy; retry later.', 'all'],
])('distinguishes a rate limit of a name from one of all names: %i %s', async (status, detail, scope) => {
  const { authority } = await start((_req, res) => {
    res.writeHead(status, { 'Content-Type': 'application/problem+json' });
    res.end(JSON.stringify({ type: 'urn:ietf:params:acme:error:rateLimited', detail }));
  });
  expect(await failure(authority.obtain('a.example'))).toMatchObject({ scope });
});

describe('a failed connection', () => {
  it.each<[string, () => Promise<ReturnType<typeof client>>, RegExp]>([
    ['refused', async () => client(`https://127.0.0.1:${await freePort()}/dir`), /ECONNREFUSED/],
    ['with an untrusted certificate', () => start(() => {}, { trusted: null }), /certificate/],
    ['with an invalid answer', () => start((_req, res) => res.end('<p>Hello.</p>')), /directory/],
    ['without a directory', () => start((_req, res) => res.writeHead(404).end('{}')), /404/],
  ])('%s rejects with the cause', async (_, begin, words) => {
    const { authority } = await begin();
    const error = await failure(authority.obtain('a.example'));
    expect(error).toBeInstanceOf(Error);
    expect(String(error)).toMatch(words);
  });

  it('is canceled by close', async () => {
    let arrived: () => void = () => {};
    const there = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    const { authority } = await start(() => arrived());
    const result = failure(authority.obtain('a.example'));
    await there;
    authority.close();
    expect(String(await result)).toMatch(/cancel/i);
  });
});

it('uses our own resolver and user agent, and requests the account again after a failure', async () => {
  const agents: (string | undefined)[] = [];
  const { authority, lookups } = await start(
    (req, res) => {
      agents.push(req.headers['user-agent']);
      res.writeHead(500).end('{}');
    },
    { host: 'ca.example' },
  );
  await failure(authority.obtain('a.example'));
  await failure(authority.obtain('a.example'));
  expect(lookups).toEqual(['ca.example', 'ca.example']);
  expect(agents).toEqual(['Postrider/test', 'Postrider/test']);
});

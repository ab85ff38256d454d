import { generateKeyPairSync } from 'node:crypto';
import type { RequestListener } from 'node:http';
import { createServer } from 'node:https';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createAuthority, HeldOff } from '../../src/certificates/authority.ts';
import { DnsError } from '../../src/dns/dns-error.ts';
import type { Resolver } from '../../src/dns/resolver.ts';
import { createAuthority as createTestAuthority } from '../support/certificates.ts';
import { freePort } from '../support/free-port.ts';
import { portOf } from '../support/https-client.ts';

/** What goes wrong before there is an order; a whole order is played with a real authority in test/e2e. */
const trusted = createTestAuthority();

async function start(answer: RequestListener, wish: { trusted?: string | null; host?: string } = {}) {
  const server = createServer(trusted.issue(['127.0.0.1', 'ca.example']), answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return client(`https://${wish.host ?? '127.0.0.1'}:${portOf(server)}/dir`, wish.trusted);
}

function client(directory: string, ca: string | null = trusted.cert) {
  const asked: string[] = [];
  const resolver = {
    a: async (name: string) => {
      asked.push(name);
      return { records: ['127.0.0.1'], ttl: 60, authenticated: false };
    },
    aaaa: async (name: string) => {
      throw new DnsError('ENODATA', `AAAA ${name}`, 'no such record');
    },
  } as Partial<Resolver> as Resolver; // the rest is not asked
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const authority = createAuthority({
    directory,
    email: null,
    trusted: ca,
    userAgent: 'Postrider/test',
    resolver,
    accountKey: async () => key,
    offer: () => {},
    withdraw: () => {},
  });
  onTestFinished(() => authority.close());
  return { authority, asked };
}

const failure = (work: Promise<unknown>) =>
  work.then(
    () => 'it succeeded',
    (error: unknown) => error,
  );

describe('an authority that has enough of us', () => {
  it.each([
    [429, '120', 120_000],
    [503, '7', 7000],
    [429, new Date(Date.now() + 3_600_000).toUTCString(), expect.closeTo(3_600_000, -5)],
    [429, 'soon', null],
    [429, undefined, null],
  ])(
    'answers %i with Retry-After %s: nothing is tried again, and the pause is known',
    async (status, after, waitMs) => {
      let requests = 0;
      const { authority } = await start((_req, res) => {
        requests++;
        res.writeHead(status, after === undefined ? {} : { 'Retry-After': after }).end('{}');
      });
      const error = await failure(authority.obtain('a.example'));
      expect(error).toBeInstanceOf(HeldOff);
      expect(error).toMatchObject({ waitMs });
      expect(requests).toBe(1);
    },
  );
});

describe('an authority that cannot be talked to', () => {
  it.each<[string, () => Promise<ReturnType<typeof client>>, RegExp]>([
    ['is not there', async () => client(`https://127.0.0.1:${await freePort()}/dir`), /ECONNREFUSED/],
    ['is vouched for by nobody we trust', () => start(() => {}, { trusted: null }), /certificate/],
    ['answers nonsense', () => start((_req, res) => res.end('<p>Hello.</p>')), /directory/],
    ['has no directory there', () => start((_req, res) => res.writeHead(404).end('{}')), /404/],
  ])('%s: why is said, at once', async (_, begin, words) => {
    const { authority } = await begin();
    const error = await failure(authority.obtain('a.example'));
    expect(error).toBeInstanceOf(Error);
    expect(String(error)).toMatch(words);
  });

  it('is broken off when we close', async () => {
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

it('is looked up by our own resolver, told who asks, and asked anew after a failure', async () => {
  const agents: (string | undefined)[] = [];
  const { authority, asked } = await start(
    (req, res) => {
      agents.push(req.headers['user-agent']);
      res.writeHead(500).end('{}');
    },
    { host: 'ca.example' },
  );
  await failure(authority.obtain('a.example'));
  await failure(authority.obtain('a.example'));
  expect(asked).toEqual(['ca.example', 'ca.example']);
  expect(agents).toEqual(['Postrider/test', 'Postrider/test']);
});

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemRandom } from '../../src/core/random.ts';
import { DnsError } from '../../src/dns/dns-error.ts';
import { type ConfigurableResolver, createResolver } from '../../src/dns/resolver.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { PATIENCE_MS } from '../support/patience.ts';

let dns: DnsServer;
let resolver: ConfigurableResolver;
let now: number;

beforeEach(async () => {
  now = 1_700_000_000_000;
  dns = await startDnsServer();
  const clock = { now: () => now };
  resolver = createResolver({
    resolvers: [dns.address],
    timeoutMs: PATIENCE_MS,
    monotonic: clock,
    random: systemRandom,
  });
});

afterEach(async () => {
  resolver.close();
  await dns.close();
});

const passSeconds = (seconds: number) => {
  now += seconds * 1000;
};
const codeOf = (lookup: Promise<unknown>) =>
  lookup.then(
    () => 'answered',
    (error: unknown) => (error instanceof DnsError ? error.code : error),
  );

describe('a lookup returns', () => {
  it('addresses of both families', async () => {
    dns.set('host.test', 'A', ['192.0.2.1', '192.0.2.2']);
    dns.set('host.test', 'AAAA', ['2001:db8::1']);
    expect((await resolver.a('host.test')).records).toEqual(['192.0.2.1', '192.0.2.2']);
    expect((await resolver.aaaa('host.test')).records).toEqual(['2001:db8::1']);
  });

  it('MX, lower case and without trailing dot; the null MX as an empty name', async () => {
    dns.set('shop.test', 'MX', ['10 MX1.Shop.test.', '20 mx2.shop.test']);
    dns.set('null.test', 'MX', ['0 .']);
    expect((await resolver.mx('shop.test')).records).toEqual([
      { preference: 10, exchange: 'mx1.shop.test' },
      { preference: 20, exchange: 'mx2.shop.test' },
    ]);
    expect((await resolver.mx('null.test')).records).toEqual([{ preference: 0, exchange: '' }]);
  });

  it('names: CNAME, PTR, NS', async () => {
    dns.set('www.test', 'CNAME', ['Host.test']);
    dns.set('1.2.0.192.in-addr.arpa', 'PTR', ['host.test']);
    dns.set('shop.test', 'NS', ['ns1.test', 'ns2.test']);
    expect((await resolver.cname('www.test')).records).toEqual(['host.test']);
    expect((await resolver.ptr('1.2.0.192.in-addr.arpa')).records).toEqual(['host.test']);
    expect((await resolver.ns('shop.test')).records).toEqual(['ns1.test', 'ns2.test']);
  });

  it('TLSA', async () => {
    dns.set('_25._tcp.mx.test', 'TLSA', [`3 1 1 ${'ab'.repeat(32)}`]);
    expect((await resolver.tlsa('_25._tcp.mx.test')).records).toEqual([
      { usage: 3, selector: 1, matchingType: 1, certificate: Buffer.alloc(32, 0xab) },
    ]);
  });

  it('TXT in the published strings', async () => {
    const long = 'k'.repeat(600);
    dns.set('many.test', 'TXT', ['v=spf1 -all', ['one ', 'record'], '']);
    dns.set('long.test', 'TXT', [long]);
    expect((await resolver.txt('many.test')).records).toEqual([['v=spf1 -all'], ['one ', 'record'], ['']]);
    expect((await resolver.txt('long.test')).records).toEqual([
      [long.slice(0, 255), long.slice(0, 255), long.slice(0, 90)],
    ]);
  });

  it('TXT as UTF-8, also when a character is split', async () => {
    const split = `${'a'.repeat(254)}ü and more`;
    dns.set('utf8.test', 'TXT', [split]);
    const { records } = await resolver.txt('utf8.test');
    expect(records[0]?.join('')).toBe(split);
  });

  it('answers that exceed a datagram, over TCP', async () => {
    const values = Array.from({ length: 40 }, (_, at) => `record ${at} ${'x'.repeat(60)}`);
    dns.set('large.test', 'TXT', values);
    expect((await resolver.txt('large.test')).records.flat()).toEqual(values);
    expect(dns.questions.map(({ via }) => via)).toEqual(['udp', 'tcp']);
  });

  it.each([{ truncate: true }, { cut: true }])('truncated answers, over TCP: %o', async (behavior) => {
    dns.set('host.test', 'A', { values: ['192.0.2.1'], ...behavior });
    expect((await resolver.a('host.test')).records).toEqual(['192.0.2.1']);
    expect(dns.questions.map(({ via }) => via)).toEqual(['udp', 'tcp']);
  });

  it.each([
    ['loopback', true],
    ['always', true],
    ['never', false],
  ] as const)('the AD bit of a server on loopback with trustAd %s: %s', async (trustAd, counts) => {
    dns.set('trusted.test', 'A', { values: ['192.0.2.1'], authenticated: true });
    resolver.configure({ resolvers: [dns.address], timeoutMs: PATIENCE_MS, trustAd });
    expect((await resolver.a('trusted.test')).authenticated).toBe(counts);
  });

  it.each([true, false])('whether the resolver validated the answer: %s', async (authenticated) => {
    dns.set('signed.test', 'A', { values: ['192.0.2.1'], authenticated });
    expect((await resolver.a('signed.test')).authenticated).toBe(authenticated);
    expect((await resolver.a('signed.test')).authenticated).toBe(authenticated); // also from the cache
  });
});

describe('names', () => {
  it.each([
    ['Host.TEST', 'host.test'],
    ['host.test.', 'host.test'],
    ['bücher.test', 'xn--bcher-kva.test'],
    ['_dmarc.BÜCHER.test', '_dmarc.xn--bcher-kva.test'],
    ['0/25.2.0.192.in-addr.arpa', '0/25.2.0.192.in-addr.arpa'],
    ['localhost', 'localhost'],
  ])('%s is queried as %s', async (name, queried) => {
    dns.set(queried, 'A', ['192.0.2.1']);
    await resolver.a(name);
    expect(dns.asked(queried, 'A')).toBe(1);
  });

  it.each([
    '',
    '..',
    'a..test',
    '.test',
    'has space.test',
    'line\nbreak.test',
    `${'a'.repeat(64)}.test`,
    `${'a.'.repeat(127)}test`,
    'ü%2etest',
    'ü/x.test',
    `${'ü'.repeat(64)}.test`,
  ])('%j is rejected as invalid, without a query', async (name) => {
    expect(await codeOf(resolver.a(name))).toBe('EBADNAME');
    expect(dns.questions).toEqual([]);
  });
});

describe('aliases', () => {
  it('are followed in the answer', async () => {
    dns.set('www.test', 'CNAME', { values: ['edge.test'], ttl: 90 });
    dns.set('edge.test', 'CNAME', ['host.test']);
    dns.set('host.test', 'A', ['192.0.2.1']);
    expect(await resolver.a('www.test')).toEqual({
      records: ['192.0.2.1'],
      ttl: 90,
      authenticated: false,
      name: 'host.test',
    });
    expect(dns.questions).toHaveLength(1);
  });

  it('are followed by further queries after an incomplete answer', async () => {
    dns.set('www.test', 'CNAME', { values: ['edge.test'], bare: true });
    dns.set('edge.test', 'CNAME', { values: ['host.test'], bare: true });
    dns.set('host.test', 'A', { values: ['192.0.2.1'], ttl: 120 });
    expect((await resolver.a('www.test')).ttl).toBe(120);
    expect(dns.questions.map(({ name }) => name)).toEqual(['www.test', 'edge.test', 'host.test']);
  });

  it('are authenticated only when every step is', async () => {
    dns.set('www.test', 'CNAME', { values: ['host.test'], bare: true, authenticated: true });
    dns.set('host.test', 'A', { values: ['192.0.2.1'], authenticated: false });
    expect((await resolver.a('www.test')).authenticated).toBe(false);
    dns.set('host.test', 'A', { values: ['192.0.2.1'], authenticated: true });
    expect((await resolver.a('www.test', { fresh: true })).authenticated).toBe(true);
    dns.set('www.test', 'CNAME', { values: ['host.test'], bare: true, authenticated: false });
    expect((await resolver.a('www.test', { fresh: true })).authenticated).toBe(false);
  });

  it.each([
    ['in one answer', false],
    ['over several', true],
  ])('in a loop fail: %s', async (_, bare) => {
    dns.set('a.test', 'CNAME', { values: ['b.test'], bare });
    dns.set('b.test', 'CNAME', { values: ['a.test'], bare });
    expect(await codeOf(resolver.a('a.test'))).toBe('EBADRESP');
    expect(dns.questions.length).toBeLessThan(10);
  });

  it('to a nonexistent name are ENOTFOUND', async () => {
    dns.set('www.test', 'CNAME', ['gone.test']);
    expect(await codeOf(resolver.a('www.test'))).toBe('ENOTFOUND');
    expect(dns.asked('gone.test')).toBe(1);
    dns.set('gone.test', '*', 'NXDOMAIN');
    expect(await codeOf(resolver.a('www.test', { fresh: true }))).toBe('ENOTFOUND');
    expect(dns.asked('gone.test')).toBe(1); // the second time from the answer
  });

  it('to a name without the record are ENODATA', async () => {
    dns.set('www.test', 'CNAME', ['host.test']);
    dns.set('host.test', 'AAAA', ['2001:db8::1']);
    expect(await codeOf(resolver.a('www.test'))).toBe('ENODATA');
  });
});

describe('negative answers and failures', () => {
  it.each([
    ['NXDOMAIN', 'ENOTFOUND', true],
    ['NODATA', 'ENODATA', true],
    ['SERVFAIL', 'ESERVFAIL', false],
    ['REFUSED', 'EREFUSED', false],
    ['FORMERR', 'EBADRESP', false],
    ['referral', 'EBADRESP', false],
    ['bad bytes', 'EBADRESP', false],
  ] as const)('%s is %s, absent: %s', async (behavior, code, absent) => {
    dns.set('shop.test', 'MX', behavior);
    const error: unknown = await resolver.mx('shop.test').catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(DnsError);
    expect(error).toMatchObject({ code, absent, message: expect.stringContaining('MX shop.test') });
  });

  it('skip an invalid record among valid ones; without a valid one the lookup fails', async () => {
    const mx = (exchange: string) =>
      ({ type: 'MX', name: 'shop.test', ttl: 300, data: { preference: 10, exchange } }) as const;
    dns.set('shop.test', 'MX', { values: [], raw: [mx('not a name.test'), mx('mx.test')] });
    expect((await resolver.mx('shop.test')).records).toEqual([{ preference: 10, exchange: 'mx.test' }]);
    dns.set('shop.test', 'MX', { values: [], raw: [mx('not a name.test'), mx('\u212A.test')] });
    expect(await codeOf(resolver.mx('shop.test', { fresh: true }))).toBe('EBADRESP');
  });
});

describe('the cache', () => {
  it.each([
    ['a short TTL', 5, 60],
    ['its TTL', 600, 600],
    ['a long TTL', 86_400, 3600],
  ])('caches an answer for %s: %i s as %i s', async (_, ttl, cached) => {
    dns.set('host.test', 'A', { values: ['192.0.2.1'], ttl });
    expect((await resolver.a('host.test')).ttl).toBe(cached);
    passSeconds(cached - 1);
    expect((await resolver.a('HOST.test.')).ttl).toBe(1);
    expect(dns.asked('host.test')).toBe(1);
    passSeconds(1);
    await resolver.a('host.test');
    expect(dns.asked('host.test')).toBe(2);
  });

  it.each([
    ['NXDOMAIN', 30, 30],
    ['NODATA', 30, 30],
    ['NXDOMAIN', 86_400, 300],
    ['NXDOMAIN', 0, 0],
    ['NODATA', null, 0],
  ] as const)('caches %s with an SOA minimum of %s for %i s', async (behavior, negativeTtl, cached) => {
    const other = await startDnsServer({ negativeTtl, behaviors: [['gone.test', 'A', behavior]] });
    const clock = { now: () => now };
    const asking = createResolver({
      resolvers: [other.address],
      timeoutMs: PATIENCE_MS,
      monotonic: clock,
      random: systemRandom,
    });
    try {
      await codeOf(asking.a('gone.test'));
      passSeconds(Math.max(0, cached - 1));
      await codeOf(asking.a('gone.test'));
      expect(other.asked('gone.test')).toBe(cached > 0 ? 1 : 2);
      passSeconds(1);
      await codeOf(asking.a('gone.test'));
      expect(other.asked('gone.test')).toBe(cached > 0 ? 2 : 3);
    } finally {
      asking.close();
      await other.close();
    }
  });

  it('caches a failure for five seconds', async () => {
    dns.set('broken.test', 'MX', 'SERVFAIL');
    expect(await codeOf(resolver.mx('broken.test'))).toBe('ESERVFAIL');
    dns.set('broken.test', 'MX', ['10 mx.test']);
    passSeconds(4);
    expect(await codeOf(resolver.mx('broken.test'))).toBe('ESERVFAIL');
    passSeconds(1);
    expect(await codeOf(resolver.mx('broken.test'))).toBe('answered');
  });

  it('is bypassed and filled by a fresh lookup', async () => {
    dns.set('host.test', 'A', ['192.0.2.1']);
    await resolver.a('host.test');
    dns.set('host.test', 'A', ['192.0.2.2']);
    expect((await resolver.a('host.test')).records).toEqual(['192.0.2.1']);
    expect((await resolver.a('host.test', { fresh: true })).records).toEqual(['192.0.2.2']);
    expect((await resolver.a('host.test')).records).toEqual(['192.0.2.2']);
    expect(dns.asked('host.test')).toBe(2);
  });

  it('retains a valid answer when a fresh lookup fails', async () => {
    dns.set('host.test', 'A', ['192.0.2.1']);
    await resolver.a('host.test');
    dns.set('host.test', 'A', 'SERVFAIL');
    expect(await codeOf(resolver.a('host.test', { fresh: true }))).toBe('ESERVFAIL');
    expect((await resolver.a('host.test')).records).toEqual(['192.0.2.1']);
  });

  it('distinguishes types, and can be cleared', async () => {
    dns.set('host.test', 'A', ['192.0.2.1']);
    await resolver.a('host.test');
    expect(await codeOf(resolver.aaaa('host.test'))).toBe('ENODATA');
    resolver.clear();
    await resolver.a('host.test');
    expect(dns.asked('host.test', 'A')).toBe(2);
  });

  it('evicts the least recently used answer', async () => {
    const clock = { now: () => now };
    const small = createResolver({
      resolvers: [dns.address],
      timeoutMs: PATIENCE_MS,
      monotonic: clock,
      random: systemRandom,
      cacheSize: 2,
    });
    dns.set('*', 'A', ['192.0.2.1']);
    for (const name of ['one.test', 'two.test', 'three.test', 'one.test', 'three.test']) await small.a(name);
    expect(dns.asked('one.test')).toBe(2);
    expect(dns.asked('three.test')).toBe(1);
    small.close();
  });
});

describe('a large answer', () => {
  const addresses = (count: number) => Array.from({ length: count }, (_, n) => `10.0.${n >> 8}.${n & 255}`);

  it('takes the place of several in the cache', async () => {
    const places = createResolver({
      resolvers: [dns.address],
      timeoutMs: PATIENCE_MS,
      monotonic: { now: () => now },
      random: systemRandom,
      cacheSize: 20,
    });
    dns.set('*', 'A', addresses(100));
    for (const name of ['one.test', 'two.test', 'two.test', 'one.test']) await places.a(name);
    // Each query is repeated over TCP.
    expect(dns.asked('two.test')).toBe(2);
    expect(dns.asked('one.test')).toBe(4);
    places.close();
  });

  it('with too many records is a failure', async () => {
    dns.set('host.test', 'A', addresses(257));
    expect(await codeOf(resolver.a('host.test'))).toBe('EBADRESP');
  });
});

describe('many lookups', () => {
  it('of the same name send one query', async () => {
    dns.set('host.test', 'A', { values: ['192.0.2.1'], delayMs: 20 });
    const answers = await Promise.all(Array.from({ length: 1000 }, () => resolver.a('host.test')));
    expect(new Set(answers.map(({ records }) => records.join()))).toEqual(new Set(['192.0.2.1']));
    expect(dns.asked('host.test')).toBe(1);
  });

  it('of different names use different source ports', async () => {
    dns.set('*', 'A', ['192.0.2.1']);
    const names = Array.from({ length: 1000 }, (_, at) => `host${at}.test`);
    const answers = await Promise.all(names.map((name) => resolver.a(name)));
    expect(answers.every(({ records }) => records[0] === '192.0.2.1')).toBe(true);
    expect(new Set(dns.questions.map(({ name }) => name)).size).toBe(1000);
    expect(new Set(dns.questions.map(({ port }) => port)).size).toBeGreaterThan(500);
    expect(new Set(dns.questions.map(({ id }) => id)).size).toBeGreaterThan(900);
  });
});

describe('createResolver', () => {
  const deps = { timeoutMs: PATIENCE_MS, monotonic: { now: () => 0 }, random: systemRandom };

  it('uses the resolvers of the system by default', () => {
    expect(() => createResolver({ resolvers: [], ...deps })).not.toThrow();
  });

  it('rejects a resolver given by name', () => {
    expect(() => createResolver({ resolvers: ['resolver.test'], ...deps })).toThrow('resolver.test');
  });
});

describe('cancellation', () => {
  it('rejects the aborted lookup, not others of the same name', async () => {
    dns.set('host.test', 'A', { values: ['192.0.2.1'], delayMs: 50 });
    const controller = new AbortController();
    const aborted = resolver.a('host.test', { signal: controller.signal });
    const other = resolver.a('host.test');
    controller.abort(new Error('shutting down'));
    await expect(aborted).rejects.toThrow('shutting down');
    expect((await other).records).toEqual(['192.0.2.1']);
    expect(dns.asked('host.test')).toBe(1);
  });

  it('rejects immediately with an aborted signal', async () => {
    dns.set('host.test', 'A', ['192.0.2.1']);
    await expect(
      resolver.a('host.test', { signal: AbortSignal.abort(new Error('too late')) }),
    ).rejects.toThrow('too late');
    const { signal } = new AbortController();
    expect((await resolver.a('host.test', { signal })).records).toEqual(['192.0.2.1']);
  });

  it('rejects lookups in progress and later ones after close', async () => {
    dns.set('silent.test', 'A', 'silent');
    dns.set('host.test', 'A', ['192.0.2.1']);
    await resolver.a('host.test');
    const pending = [codeOf(resolver.a('silent.test')), codeOf(resolver.a('silent.test'))];
    resolver.close();
    expect(await Promise.all(pending)).toEqual(['ECANCELLED', 'ECANCELLED']);
    expect(await codeOf(resolver.a('host.test'))).toBe('ECANCELLED');
  });
});

import { spf } from 'mailauth/lib/spf/index.js';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { monotonicClock } from '../../src/core/clock.ts';
import { systemRandom } from '../../src/core/random.ts';
import { forMailauth } from '../../src/dns/mailauth.ts';
import { type ConfigurableResolver, createResolver } from '../../src/dns/resolver.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { PATIENCE_MS } from '../support/patience.ts';

let dns: DnsServer;
let resolver: ConfigurableResolver;

beforeEach(async () => {
  dns = await startDnsServer();
  resolver = createResolver({
    resolvers: [dns.address],
    timeoutMs: PATIENCE_MS,
    monotonic: monotonicClock,
    random: systemRandom,
  });
});

afterEach(async () => {
  resolver.close();
  await dns.close();
});

describe('forMailauth', () => {
  it.each([
    ['A', ['192.0.2.1'], ['192.0.2.1']],
    ['AAAA', ['2001:db8::1'], ['2001:db8::1']],
    [
      'MX',
      ['10 mx.test', '0 .'],
      [
        { priority: 10, exchange: 'mx.test' },
        { priority: 0, exchange: '' },
      ],
    ],
    ['TXT', ['one', ['two ', 'strings']], [['one'], ['two ', 'strings']]],
    ['CNAME', ['other.test'], ['other.test']],
    ['PTR', ['host.test'], ['host.test']],
    ['NS', ['ns.test'], ['ns.test']],
  ] as const)('%s', async (type, values, records) => {
    dns.set('shop.test', type, values);
    expect(await forMailauth(resolver)('shop.test', type)).toEqual(records);
    expect(await forMailauth(resolver)('shop.test', type.toLowerCase())).toEqual(records);
  });

  it.each([
    ['NXDOMAIN', 'ENOTFOUND'],
    ['NODATA', 'ENODATA'],
    ['SERVFAIL', 'ESERVFAIL'],
    ['silent', 'ETIMEOUT'],
  ] as const)('%s rejects with %s', async (behavior, code) => {
    dns.set('shop.test', 'TXT', behavior);
    if (behavior === 'silent') resolver.configure({ resolvers: [dns.address], timeoutMs: 300 });
    await expect(forMailauth(resolver)('shop.test', 'TXT')).rejects.toMatchObject({ code });
  });

  it('rejects an invalid name with ENOTFOUND', async () => {
    await expect(forMailauth(resolver)('a..b', 'TXT')).rejects.toMatchObject({ code: 'ENOTFOUND' });
  });

  it('throws for an unexpected record type', async () => {
    await expect(forMailauth(resolver)('shop.test', 'SRV')).rejects.toThrow(TypeError);
  });

  it('bypasses the cache with fresh', async () => {
    dns.set('shop.test', 'A', ['192.0.2.1']);
    const fresh = forMailauth(resolver, { fresh: true });
    await fresh('shop.test', 'A');
    await fresh('shop.test', 'A');
    expect(dns.asked('shop.test', 'A')).toBe(2);
  });
});

describe('SPF of mailauth with our resolver', () => {
  const check = async (ip: string) => {
    const result = await spf({
      sender: 'postmaster@shop.test',
      ip,
      helo: 'mail.test',
      mta: 'mx.test',
      resolver: forMailauth(resolver),
    });
    return result.status.result;
  };

  it.each([
    ['192.0.2.1', 'pass'],
    ['192.0.2.2', 'pass'],
    ['192.0.2.3', 'softfail'],
  ])('%s: %s', async (ip, result) => {
    dns.set('shop.test', 'TXT', [['v=spf1 include:spf.', 'mail.test mx ~all']]);
    dns.set('spf.mail.test', 'TXT', ['v=spf1 ip4:192.0.2.1 -all']);
    dns.set('shop.test', 'MX', ['10 mx.shop.test']);
    dns.set('mx.shop.test', 'A', ['192.0.2.2']);
    expect(await check(ip)).toBe(result);
  });

  it.each([
    ['NXDOMAIN', 'none'],
    ['SERVFAIL', 'temperror'],
    ['silent', 'temperror'],
  ] as const)('a record that is %s: %s', async (behavior, result) => {
    dns.set('shop.test', 'TXT', behavior);
    if (behavior === 'silent') resolver.configure({ resolvers: [dns.address], timeoutMs: 300 });
    expect(await check('192.0.2.1')).toBe(result);
  });
});

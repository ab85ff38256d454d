import { describe, expect, it, onTestFinished } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import { monotonicClock } from '../../../src/core/clock.ts';
import { systemRandom } from '../../../src/core/random.ts';
import { createDnsView } from '../../../src/dns/dns-view.ts';
import { createResolver } from '../../../src/dns/resolver.ts';
import { checkHostConfig, checkHostDns } from '../../../src/domains/platform/host-checks.ts';
import { startDnsServer } from '../../support/dns-server.ts';

const HOST = 'mail.example.net';

function settings(values: Record<string, unknown> = {}) {
  const env = Object.entries({ hostname: HOST, ...values }).map(([path, value]) => [
    `POSTRIDER_${path.replaceAll('.', '__').toUpperCase()}`,
    typeof value === 'string' && value.startsWith('[') ? value : JSON.stringify(value),
  ]);
  return loadConfig({ file: null, env: Object.fromEntries(env) });
}

async function startDns() {
  const dns = await startDnsServer();
  const resolver = createResolver({
    resolvers: [dns.address],
    timeoutMs: 10_000,
    monotonic: monotonicClock,
    random: systemRandom,
  });
  onTestFinished(() => {
    resolver.close();
    return dns.close();
  });
  return { dns, view: createDnsView(resolver) };
}

const REACHABLE = { 'mx.listen': '0.0.0.0:25', 'public.url': `https://track.${HOST}` };

describe('checkHostConfig', () => {
  it.each([
    ['mail', true],
    ['192.0.2.1', true],
    ['mail.local', true],
    ['localhost', true],
    ['mail.example.net', false],
    ['mail.xn--p1ai', false],
  ])('hostname %s: %s', (hostname, warned) => {
    const keys = checkHostConfig(settings({ hostname, 'public.url': 'https://track.example.net' })).map(
      ({ key }) => key,
    );
    expect(keys).toEqual(warned ? ['hostname'] : []);
  });

  it('warns of an http public.url, except on loopback', () => {
    const keysOf = (url: string) => checkHostConfig(settings({ 'public.url': url })).map(({ key }) => key);
    expect(keysOf('http://track.example.net')).toEqual(['public.url']);
    expect(keysOf('http://127.0.0.1:8081')).toEqual([]);
  });
});

describe('checkHostDns', () => {
  it('returns no warnings for a correct host', async () => {
    const { dns, view } = await startDns();
    dns.set(HOST, 'A', ['192.0.2.1']);
    dns.set(HOST, 'AAAA', ['2001:db8::1']);
    dns.set('1.2.0.192.in-addr.arpa', 'PTR', [HOST]);
    dns.set(`1.${'0.'.repeat(23)}8.b.d.0.1.0.0.2.ip6.arpa`, 'PTR', [HOST]);
    expect(await checkHostDns(view, settings(REACHABLE))).toEqual([]);
  });

  it('warns of a name without an address and of a failed lookup', async () => {
    const { dns, view } = await startDns();
    dns.set('failing.example.net', 'A', 'SERVFAIL');
    dns.set('failing.example.net', 'AAAA', 'SERVFAIL');
    const [missing] = await checkHostDns(view, settings(REACHABLE));
    expect(missing?.message).toBe(`${HOST} has no address in DNS. Publish its A and AAAA records`);
    const [failing] = await checkHostDns(view, settings({ ...REACHABLE, hostname: 'failing.example.net' }));
    expect(failing?.message).toMatch(/could not be looked up: the DNS server answered SERVFAIL/);
  });

  it('warns of listeners on loopback when the name has a public address', async () => {
    const { dns, view } = await startDns();
    dns.set(HOST, 'A', ['192.0.2.1']);
    dns.set('1.2.0.192.in-addr.arpa', 'PTR', [HOST]);
    const keysOf = async (values: Record<string, unknown>) =>
      (await checkHostDns(view, settings(values))).map(({ key }) => key);
    expect(await keysOf({})).toEqual(['mx.listen', 'public.url']);
    expect(await keysOf({ ...REACHABLE, 'mx.listen': '[::1]:25' })).toEqual(['mx.listen']);
    expect(await keysOf({ ...REACHABLE, 'public.url': `http://${HOST}:8081` })).toEqual(['public.listen']);
    // Behind reverse proxies.
    expect(
      await keysOf({ ...REACHABLE, 'mx.listen': '127.0.0.1:2525', 'mx.proxyProtocol': '["127.0.0.1"]' }),
    ).toEqual([]);
    expect(await keysOf({ ...REACHABLE, 'public.url': `http://${HOST}` })).toEqual([]);
    dns.set(HOST, 'A', ['127.0.0.1']);
  });

  it('accepts listeners on loopback when the name leads to loopback', async () => {
    const { dns, view } = await startDns();
    dns.set(HOST, 'A', ['127.0.0.1']);
    expect(await checkHostDns(view, settings())).toEqual([]);
  });

  it('warns of a source address without forward-confirmed reverse DNS', async () => {
    const { dns, view } = await startDns();
    dns.set(HOST, 'A', ['192.0.2.1']);
    dns.set('3.2.0.192.in-addr.arpa', 'PTR', ['other.example.net']);
    dns.set('other.example.net', 'A', ['192.0.2.99']);
    dns.set('4.2.0.192.in-addr.arpa', 'PTR', 'SERVFAIL');
    const egress =
      '[{ name = "one", address = "192.0.2.2" }, { name = "two", address = "192.0.2.3" }, { name = "three", address = "192.0.2.4" }, { name = "inside", address = "10.0.0.1" }]';
    const messages = (await checkHostDns(view, settings({ ...REACHABLE, 'delivery.egress': egress }))).map(
      ({ message }) => message,
    );
    expect(messages).toEqual([
      expect.stringMatching(/^the source address 192\.0\.2\.2 has no PTR record: .* Set the PTR record/),
      expect.stringMatching(/192\.0\.2\.3 names other\.example\.net, which does not lead back to it/),
      expect.stringMatching(/192\.0\.2\.4 could not be looked up/),
    ]);
  });
});

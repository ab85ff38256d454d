import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import type { DeliveryRoute } from '../../src/config/setting-types.ts';
import { monotonicClock } from '../../src/core/clock.ts';
import { systemRandom } from '../../src/core/random.ts';
import type { Ipv6Use } from '../../src/delivery/egress-pools.ts';
import { createGuard, createRouteFinder, type RouteResult } from '../../src/delivery/routes.ts';
import { createResolver } from '../../src/dns/resolver.ts';
import { startDnsServer } from '../support/dns-server.ts';

const dns = await startDnsServer();
const resolver = createResolver({
  resolvers: [dns.address],
  timeoutMs: 300,
  monotonic: monotonicClock,
  random: systemRandom,
});

dns.set('one.test', 'MX', ['10 mx1.one.test', '20 mx2.one.test']);
dns.set('mx1.one.test', 'A', ['8.8.4.1', '8.8.4.2', '8.8.4.3']);
dns.set('mx1.one.test', 'AAAA', ['2001:4860::1']);
dns.set('mx2.one.test', 'A', ['8.8.4.9']);
dns.set('equal.test', 'MX', ['5 mx1.one.test', '5 mx2.one.test']);
dns.set('implicit.test', 'A', ['8.8.4.20']);
dns.set('null.test', 'MX', ['0 .']);
dns.set('textonly.test', 'TXT', ['nothing else']);
dns.set('private.test', 'MX', ['10 inside.test']);
dns.set('inside.test', 'A', ['10.0.0.5', '169.254.169.254']);
dns.set('mixed.test', 'MX', ['10 inside.test', '20 mx2.one.test']);
dns.set('listener.test', 'A', ['8.8.4.77']);
dns.set('mail.example.com', 'A', ['8.8.4.88']);
dns.set('nat.test', 'MX', ['10 nat-host.test']);
dns.set('nat-host.test', 'A', ['8.8.4.88']);
dns.set('nat-backup.test', 'MX', [
  '10 mx1.one.test',
  '20 mx2.one.test',
  '20 nat-host.test',
  '30 h1.many.test',
]);
dns.set('neighbor.test', 'A', ['8.8.4.89']);
dns.set('listener-backup.test', 'MX', ['10 listener.test', '20 mx2.one.test']);
dns.set('ours.test', 'MX', ['10 mail.example.com']);
dns.set('backup.test', 'MX', ['10 mx1.one.test', '20 mail.example.com', '30 mx2.one.test']);
dns.set('six.test', 'MX', ['10 mx.six.test']);
dns.set('mx.six.test', 'AAAA', ['2001:4860::6']);
dns.set('six-alone.test', 'AAAA', ['2001:4860::7']);
dns.set('six-private.test', 'MX', ['10 mx.six-private.test']);
dns.set('mx.six-private.test', 'AAAA', ['fd00::1', 'fe80::1', '::1']);
dns.set('six-mixed.test', 'MX', ['10 mx.six-private.test', '20 mx.six.test']);
dns.set('six-part.test', 'MX', ['10 mx.six-part.test']);
dns.set('mx.six-part.test', 'AAAA', ['fd00::1', '2001:4860::8']);
dns.set('six-listener.test', 'AAAA', ['2001:4860::77']);
dns.set('six-shaky.test', 'MX', ['10 mx.six-shaky.test']);
dns.set('mx.six-shaky.test', 'AAAA', 'SERVFAIL');
dns.set('broken.test', 'MX', 'SERVFAIL');
dns.set('silent.test', 'MX', 'silent');
dns.set('dangling.test', 'MX', ['10 gone.one.test']);
dns.set('shaky.test', 'MX', ['10 gone.one.test', '20 shaky-host.test']);
dns.set('shaky-host.test', 'A', 'SERVFAIL');
dns.set('shaky-host.test', 'AAAA', 'SERVFAIL');
dns.set(
  'many.test',
  'MX',
  Array.from({ length: 9 }, (_, n) => `${n} h${n}.many.test`),
);
for (let n = 0; n < 9; n++) dns.set(`h${n}.many.test`, 'A', [`8.8.4.${100 + n}`]);

dns.set('rest.test', 'MX', [...Array.from({ length: 7 }, (_, n) => `${n} gone${n}.test`), '9 mx2.one.test']);
dns.set(
  'all-gone.test',
  'MX',
  Array.from({ length: 26 }, (_, n) => `${n} gone${n}.test`),
);

interface Settings {
  hostname?: string;
  routes?: DeliveryRoute[];
  allowPrivateNetworks?: boolean;
  listen?: [mx: string, submission: string];
  port?: number;
}

/** Behind NAT, with two public addresses. */
const EGRESS = '[{ name = "one", publicAddress = "8.8.4.88" }, { name = "two", publicAddress = "8.8.4.89" }]';

function configOf(settings: Settings) {
  const { hostname = 'mail.example.com', routes = [], allowPrivateNetworks = false, port = 25 } = settings;
  const { listen: [mx, submission] = ['8.8.4.77:25', '[2001:4860::77]:25'] } = settings;
  const env = {
    POSTRIDER_HOSTNAME: hostname,
    POSTRIDER_DELIVERY__EGRESS: EGRESS,
    POSTRIDER_DELIVERY__ALLOWPRIVATENETWORKS: String(allowPrivateNetworks),
    POSTRIDER_DELIVERY__PORT: String(port),
    POSTRIDER_MX__LISTEN: mx,
    POSTRIDER_SUBMISSION__LISTEN: submission,
  };
  const config = loadConfig({ env });
  config.delivery.routes = routes;
  return config;
}

function find(
  destination: string,
  { ipv6 = 'never', ...settings }: Settings & { ipv6?: Ipv6Use } = {},
): Promise<RouteResult> {
  const config = configOf(settings);
  return createRouteFinder({ config, random: systemRandom }, { resolver })(destination, ipv6);
}

const guardOf = (settings: Settings) => createGuard(configOf(settings));

const names = (where: RouteResult) =>
  where.kind === 'hosts' ? where.hosts.map(({ name }) => name) : where.failure;

describe('the route of a destination', () => {
  it.each<[string, string, unknown]>([
    ['MX hosts by preference', 'one.test', ['mx1.one.test', 'mx2.one.test']],
    ['the name itself where there is no MX', 'implicit.test', ['implicit.test']],
    ['nowhere: null MX', 'null.test', 'null-mx'],
    ['nowhere: no such name', 'nothing.test', 'no-such-domain'],
    ['nowhere: a name without MX and address', 'textonly.test', 'no-mail-service'],
    ['nowhere: MX hosts without an address', 'dangling.test', 'no-mail-host'],
    ['not known yet: SERVFAIL', 'broken.test', 'dns-trouble'],
    ['not known yet: no answer', 'silent.test', 'dns-trouble'],
    ['not known yet: one of the hosts could not be looked up', 'shaky.test', 'dns-trouble'],
    ['nowhere: private and link-local addresses', 'private.test', 'private-network'],
    ['only to public hosts of a mixed set', 'mixed.test', ['mx2.one.test']],
    ['nowhere: our own listener', 'listener.test', 'own-address'],
    ['nowhere: we are the best MX', 'ours.test', 'routing-loop'],
    ['only to hosts preferred to us', 'backup.test', ['mx1.one.test']],
    ['nowhere: our own listener is the best MX', 'listener-backup.test', 'own-address'],
    ['nowhere: our address behind NAT', 'nat.test', 'own-address'],
    ['only to hosts preferred to our address behind NAT', 'nat-backup.test', ['mx1.one.test']],
    ['to another server behind our NAT', 'neighbor.test', ['neighbor.test']],
    [
      'to at most five hosts',
      'many.test',
      ['h0.many.test', 'h1.many.test', 'h2.many.test', 'h3.many.test', 'h4.many.test'],
    ],
    ['to a host behind many without an address', 'rest.test', ['mx2.one.test']],
    ['not known yet: too many hosts without an address', 'all-gone.test', 'dns-trouble'],
  ])('%s', async (_, destination, expected) => {
    expect(names(await find(destination))).toEqual(expected);
  });

  it('waits when it is not known whether an address behind NAT is ours', async () => {
    const hostname = 'shaky-host.test';
    expect(names(await find('nat.test', { hostname }))).toBe('dns-trouble');
    expect(names(await find('one.test', { hostname }))).toEqual(['mx1.one.test', 'mx2.one.test']);
    expect(names(await find('nat.test', { hostname: 'textonly.test' }))).toEqual(['nat-host.test']);
  });

  it('shuffles hosts of equal preference', async () => {
    const orders = new Set<string>();
    for (let n = 0; n < 64; n++) orders.add(String(names(await find('equal.test'))));
    expect(orders.size).toBe(2);
  });

  it('uses two addresses of a host, of both families if IPv6 can be used', async () => {
    const plain = await find('one.test');
    const both = await find('one.test', { ipv6: 'always' });
    expect(plain.kind === 'hosts' && plain.hosts[0]?.addresses).toHaveLength(2);
    expect(both.kind === 'hosts' && both.hosts[0]?.addresses).toEqual([
      '2001:4860::1',
      expect.stringMatching(/^8\.8\.4\.[123]$/),
    ]);
  });

  it.each<[string, string, Ipv6Use, unknown]>([
    ['an MX host with IPv6 alone', 'six.test', 'always', { hosts: [{ addresses: ['2001:4860::6'] }] }],
    ['an MX host with IPv6 alone', 'six.test', 'fallback', { hosts: [{ addresses: ['2001:4860::6'] }] }],
    ['an MX host with IPv6 alone', 'six.test', 'never', { kind: 'failure', failure: 'ipv6-only' }],
    [
      'the domain itself with IPv6 alone',
      'six-alone.test',
      'fallback',
      { hosts: [{ addresses: ['2001:4860::7'] }] },
    ],
    [
      'the domain itself with IPv6 alone',
      'six-alone.test',
      'never',
      { kind: 'failure', failure: 'ipv6-only' },
    ],
    ['private addresses', 'six-private.test', 'fallback', { kind: 'failure', failure: 'private-network' }],
    ['private addresses', 'six-private.test', 'never', { kind: 'failure', failure: 'private-network' }],
    ['a private MX host before a public one', 'six-mixed.test', 'never', { failure: 'ipv6-only' }],
    ['a private and a public address', 'six-part.test', 'never', { failure: 'ipv6-only' }],
    ['our own listener', 'six-listener.test', 'never', { kind: 'failure', failure: 'own-address' }],
    [
      'an MX host, perhaps (SERVFAIL),',
      'six-shaky.test',
      'never',
      { kind: 'failure', failure: 'dns-trouble' },
    ],
  ])('%s: %s, IPv6 %s', async (_, destination, ipv6, expected) => {
    expect(await find(destination, { ipv6 })).toMatchObject(expected as object);
  });

  it('looks IPv6 addresses up only for a host without another address', async () => {
    const where = await find('one.test', { ipv6: 'fallback' });
    expect(
      where.kind === 'hosts' && where.hosts[0]?.addresses.every((address) => !address.includes(':')),
    ).toBe(true);
  });

  it('prefers a configured route, an exact one before "*", even with a private address', async () => {
    const base = { port: 2525, tls: 'none' as const, allowUnverifiedAuth: false };
    const routes: DeliveryRoute[] = [
      { match: '*', host: '10.9.9.9', ...base },
      { match: 'one.test', host: '127.0.0.9', ...base },
    ];
    expect(names(await find('one.test', { routes }))).toEqual(['127.0.0.9']);
    expect(names(await find('whatever.test', { routes }))).toEqual(['10.9.9.9']);
  });
});

it('names the next hop of a configured route that has no address', async () => {
  const route = {
    match: '*',
    host: 'gone.one.test',
    port: 25,
    tls: 'none',
    allowUnverifiedAuth: false,
  } as const;
  expect(await find('one.test', { routes: [route] })).toMatchObject({ failure: 'dns-trouble', route });
  expect(await find('broken.test')).toMatchObject({ failure: 'dns-trouble', route: null });
});

describe('the private-network guard', () => {
  it('refuses addresses that are not public unless private networks are allowed', () => {
    const judge = guardOf({});
    expect(judge('10.1.2.3')).toBe('private-network');
    expect(judge('169.254.169.254')).toBe('private-network');
    expect(judge('::a01:203')).toBe('private-network');
    expect(judge('8.8.8.8')).toBe('allowed');
    expect(guardOf({ allowPrivateNetworks: true })('10.1.2.3')).toBe('allowed');
  });

  it('recognizes the listeners of this daemon, even if they are bound to a wildcard address', () => {
    const listen: Settings['listen'] = ['0.0.0.0:25', '127.0.0.5:26'];
    const at25 = guardOf({ allowPrivateNetworks: true, listen });
    const at26 = guardOf({ allowPrivateNetworks: true, listen, port: 26 });
    expect(at25('127.0.0.1')).toBe('own-address');
    expect(at26('127.0.0.5')).toBe('own-address');
    expect(at26('127.0.0.6')).toBe('allowed');
    expect(at25('8.8.8.8')).toBe('allowed');
  });

  it.each(['::ffff:127.0.0.1', '::ffff:7f00:1', '0.0.0.0', '::', '0:0:0:0:0:0:0:1'])(
    'knows our own listener behind a wildcard by %s, too',
    (address) => {
      const judge = guardOf({ allowPrivateNetworks: true, listen: ['0.0.0.0:25', 'off'] });
      expect(judge(address)).toBe('own-address');
    },
  );

  it('recognizes a listener in every notation of its address', () => {
    const judge = guardOf({ allowPrivateNetworks: true, listen: ['127.0.0.5:25', '[fd00::5]:25'] });
    expect(judge('::ffff:127.0.0.5')).toBe('own-address');
    expect(judge('fd00:0:0::5')).toBe('own-address');
    expect(judge('127.0.0.6')).toBe('allowed');
    const byName = guardOf({ allowPrivateNetworks: true, listen: ['localhost:26', 'off'], port: 26 });
    expect(byName('127.0.0.1')).toBe('own-address');
  });
});

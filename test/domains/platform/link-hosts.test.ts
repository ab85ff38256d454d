import { expect, it, onTestFinished } from 'vitest';
import { HOUR, MINUTE } from '../../../src/core/clock.ts';
import { systemRandom } from '../../../src/core/random.ts';
import { createResolver } from '../../../src/dns/resolver.ts';
import {
  createHostLocator,
  type LinkHostStatus,
  linkHostStatus,
} from '../../../src/domains/platform/link-hosts.ts';
import { publicHost } from '../../../src/domains/platform/platform.ts';
import { startDnsServer } from '../../support/dns-server.ts';
import { PATIENCE_MS } from '../../support/patience.ts';
import { heldClock, insertAccount, insertDomain, startStore } from '../../support/store.ts';

const STANDINGS: [string, LinkHostStatus | null][] = [
  ['link.example.com', 'proven'],
  ['LINK.Example.COM', 'proven'],
  ['link.example.com.', 'proven'],
  ['eu-m-link.example.com', 'proven'],
  ['link.bücher.example', 'proven'],
  ['mta-sts.return-a.example.com', 'proven'],
  ['mta-sts.return-a.pending.example', 'registered'],
  ['mta-sts.return-a.other.example', null],
  ['mta-sts.example.com', null],
  ['link.pending.example', 'registered'],
  ['t.pending.example', 'registered'],
  ['link.both.example', 'proven'],
  ['track.mail.example.net', 'own'],
  ['mail-links.example.net', 'own'],
  ['mail.example.net', null],
  ['example.com', null],
  ['www.example.com', null],
  ['link.www.example.com', null],
  ['link.other.example', null],
  ['link.', null],
  ['link', null],
  ['', null],
  ['link.example.com:443', null],
  ['192.0.2.1', null],
  ['link.example.com, evil.example', null],
];

it('linkHostStatus classifies hosts by the registered domains', () => {
  const { tables, clock } = startStore();
  const now = clock.now();
  insertAccount(tables, 'acct_two', now);
  const domain = { account_id: 'acct_two', domain_id: 'domain_two', name: 'xn--bcher-kva.example' };
  insertDomain(tables, domain, now);
  insertDomain(
    tables,
    {
      ...domain,
      domain_id: 'domain_three',
      name: 'pending.example',
      status: 'PENDING',
      dkim_enabled: 0,
      tracking_domain: 't.pending.example',
    },
    now,
  );
  // Registered by two accounts, one of which is verified.
  const both = { name: 'both.example', tracking_domain: null };
  insertDomain(tables, { ...both, account_id: 'acct_one', domain_id: 'domain_five', dkim_enabled: 0 }, now);
  insertDomain(tables, { ...both, account_id: 'acct_two', domain_id: 'domain_six', dkim_enabled: 1 }, now);
  const example = tables.domains.byId('domain_one');
  if (example) tables.domains.remove(example.domain_id);
  insertDomain(
    tables,
    {
      account_id: 'acct_one',
      domain_id: 'domain_four',
      name: 'example.com',
      tracking_domain: 'eu-m-link.example.com',
    },
    now,
  );
  const platform = { hostname: 'mail.example.net', publicUrl: 'https://mail-links.example.net:8443/x' };
  expect(STANDINGS.map(([host]) => [host, linkHostStatus(tables, platform, host)])).toEqual(STANDINGS);
});

it('publicHost returns the host of public.url if it can have a certificate', () => {
  const hosts = [
    ['https://track.example.net', 'track.example.net'],
    ['https://Track.Example.net:8443/x', 'track.example.net'],
    ['http://127.0.0.1:8081', null],
    ['https://[2001:db8::1]', null],
    ['http://localhost:8081', null],
  ] as const;
  expect(hosts.map(([publicUrl]) => [publicUrl, publicHost({ publicUrl })])).toEqual(hosts);
});

const OURS = 'track.mail.example';

async function start({ timeoutMs = PATIENCE_MS } = {}) {
  const dns = await startDnsServer();
  const clock = heldClock();
  const resolver = createResolver({
    resolvers: [dns.address],
    timeoutMs: PATIENCE_MS,
    monotonic: clock,
    random: systemRandom,
  });
  const platform = { hostname: 'mail.example', publicUrl: 'https://links.mail.example' };
  const locator = createHostLocator(clock, resolver, platform, timeoutMs);
  onTestFinished(async () => {
    locator.close();
    resolver.close();
    await dns.close();
  });
  dns.set(OURS, 'A', ['192.0.2.1']);
  dns.set('links.mail.example', 'A', ['192.0.2.2']);
  return { dns, clock, locator };
}

it.each([
  ['has our address', ['192.0.2.1'], 'here'],
  ['has one of our addresses', ['192.0.2.9', '192.0.2.1'], 'here'],
  ['has the address of public.url', ['192.0.2.2'], 'here'],
  ['has another address', ['192.0.2.9'], 'elsewhere'],
  ['has none', 'NODATA', 'elsewhere'],
  ['does not exist', 'NXDOMAIN', 'elsewhere'],
  ['cannot be looked up', 'SERVFAIL', 'unknown'],
] as const)('a host that %s (%j): %s', async (_, addresses, location) => {
  const { dns, locator } = await start();
  dns.set('link.customer.example', typeof addresses === 'string' ? '*' : 'A', addresses);
  expect(await locator.locate('link.customer.example', 'proven')).toBe(location);
});

it('returns unknown while our own addresses are unknown', async () => {
  const { dns, locator, clock } = await start();
  dns.set(OURS, 'A', 'SERVFAIL');
  dns.set('link.customer.example', 'A', ['192.0.2.9']);
  expect(await locator.locate('link.customer.example', 'proven')).toBe('unknown');
  // That causes no pause for the host's domain.
  dns.set(OURS, 'A', ['192.0.2.9']);
  clock.advance(6000);
  expect(await locator.locate('link.customer.example', 'proven')).toBe('here');
});

it('returns as soon as one address is ours, without the answer for the other family', async () => {
  const { dns, locator } = await start();
  dns.set('link.customer.example', 'A', ['192.0.2.1']);
  dns.set('link.customer.example', 'AAAA', 'silent');
  expect(await locator.locate('link.customer.example', 'proven')).toBe('here');
});

it('repeats lookups at growing intervals while a host leads elsewhere', async () => {
  const { dns, locator, clock } = await start();
  dns.set('link.customer.example', 'A', ['192.0.2.9']);
  const lookups: number[] = [];
  for (let minute = 0; minute <= 30; minute++) {
    const before = dns.asked('link.customer.example', 'A');
    expect(await locator.locate('link.customer.example', 'proven')).toBe('elsewhere');
    if (dns.asked('link.customer.example', 'A') > before) lookups.push(minute);
    clock.advance(MINUTE);
  }
  expect(lookups).toEqual([0, 1, 3, 7, 15, 25]);
});

it('pauses lookups of a domain whose name servers do not answer, for all its hosts', async () => {
  const { dns, locator, clock } = await start({ timeoutMs: 1000 });
  const hosts = Array.from({ length: 50 }, (_, n) => `t${n}.dead.example`);
  for (const host of hosts) dns.set(host, '*', 'silent');
  const asked = () => hosts.filter((host) => dns.asked(host, 'A') > 0).length;
  const counts: number[] = [];
  for (let minute = 0; minute < 8; minute++) {
    for (const host of hosts.slice(minute * 5)) expect(await locator.locate(host, 'proven')).toBe('unknown');
    counts.push(asked());
    clock.advance(MINUTE);
  }
  // After 0, 1, 3 and 7 minutes.
  expect(counts).toEqual([1, 2, 2, 3, 3, 3, 3, 4]);
  clock.advance(2 * HOUR);
  dns.set('t1.dead.example', 'A', ['192.0.2.1']);
  expect(await locator.locate('t1.dead.example', 'proven')).toBe('here');
});

it('delays no other class and no other domain while name servers do not answer', async () => {
  const { dns, locator } = await start();
  const dead = Array.from({ length: 20 }, (_, n) => `link.dead${n}.example`);
  for (const host of dead) dns.set(host, '*', 'silent');
  for (const host of ['link.one.example', 'link.two.example']) dns.set(host, 'A', ['192.0.2.1']);
  const stuck = dead.map((host) => locator.locate(host, 'registered'));
  expect(await locator.locate('link.one.example', 'proven')).toBe('here');
  expect(await locator.locate('link.two.example', 'renewal')).toBe('here');
  // One at a time for a domain.
  const same = Array.from({ length: 20 }, (_, n) => `t${n}.dead.example`);
  for (const host of [...same, 't.three.example']) dns.set(host, '*', 'silent');
  const more = same.map((host) => locator.locate(host, 'proven'));
  dns.set('t.three.example', 'A', ['192.0.2.1']);
  expect(await locator.locate('t.three.example', 'proven')).toBe('here');
  expect(same.filter((host) => dns.asked(host) > 0)).toHaveLength(1);
  locator.close();
  expect(new Set(await Promise.all([...stuck, ...more]))).toEqual(new Set(['unknown', 'busy']));
});

it('limits the lookups per minute for one domain', async () => {
  const { dns, locator, clock } = await start();
  const hosts = Array.from({ length: 60 }, (_, n) => `t${n}.customer.example`);
  for (const host of hosts) dns.set(host, 'A', ['192.0.2.9']);
  const count = (locations: string[]) => locations.filter((location) => location === 'elsewhere').length;
  const locations = [];
  for (const host of hosts) locations.push(await locator.locate(host, 'proven'));
  expect([count(locations), new Set(locations)]).toEqual([20, new Set(['elsewhere', 'busy'])]);
  clock.advance(MINUTE);
  expect(await locator.locate('t59.customer.example', 'proven')).toBe('elsewhere');
});

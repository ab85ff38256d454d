import { expect, it } from 'vitest';
import type { DnsView, Seen } from '../../src/domains/dns-view.ts';
import { isLinkHost, leadsHere, publicHost } from '../../src/domains/link-hosts.ts';
import { insertAccount, insertDomain, startStore } from '../support/store.ts';

it.each([
  ['link.example.com', true],
  ['LINK.Example.COM', true],
  ['link.example.com.', true],
  ['eu-m-link.example.com', true],
  ['link.bücher.example', true],
  ['link.pending.example', true],
  ['track.mail.example.net', true],
  ['mail-links.example.net', true],
  ['mail.example.net', false],
  ['example.com', false],
  ['www.example.com', false],
  ['link.www.example.com', false],
  ['link.other.example', false],
  ['link.', false],
  ['link', false],
  ['', false],
  ['link.example.com:443', false],
  ['192.0.2.1', false],
  ['link.example.com, evil.example', false],
])('%s: %s', (host, known) => {
  const { tables, clock } = startStore();
  const now = clock.now();
  insertAccount(tables, 'acct_two', now);
  const domain = { account_id: 'acct_two', domain_id: 'domain_two', name: 'xn--bcher-kva.example' };
  insertDomain(tables, domain, now);
  insertDomain(
    tables,
    { ...domain, domain_id: 'domain_three', name: 'pending.example', status: 'PENDING' },
    now,
  );
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
  expect(isLinkHost(tables, platform, host)).toBe(known);
});

const OURS = 'track.mail.example.net';
const absent: Seen<string> = { kind: 'absent', nameExists: false };
const unknown: Seen<string> = { kind: 'unknown', why: 'the DNS server did not answer (time-out)' };
const at = (...records: string[]): Seen<string> => ({ kind: 'records', records });

it.each<[what: string, host: Seen<string>, ours: Seen<string>, leads: boolean]>([
  ['has our address', at('192.0.2.1'), at('192.0.2.1'), true],
  ['has one of our addresses', at('192.0.2.1', '192.0.2.2'), at('192.0.2.2', '192.0.2.3'), true],
  ['has another address', at('192.0.2.9'), at('192.0.2.1'), false],
  ['has none', absent, at('192.0.2.1'), false],
  ['has none, as we', absent, absent, false],
  ['cannot be looked up', unknown, at('192.0.2.1'), false],
  ['leads where we cannot be looked up', at('192.0.2.1'), unknown, false],
])('a host that %s: leads here %s', async (_, theirs, ours, leads) => {
  const view = {
    a: async (name: string) => (name === OURS ? ours : theirs),
    aaaa: async () => absent,
  } as Partial<DnsView> as DnsView; // the rest is not asked
  expect(await leadsHere(view, { hostname: 'mail.example.net' }, 't.kunde.example')).toBe(leads);
});

it.each([
  ['https://track.example.net', 'track.example.net'],
  ['https://Track.Example.net:8443/x', 'track.example.net'],
  ['http://127.0.0.1:8081', null],
  ['https://[2001:db8::1]', null],
  ['http://localhost:8081', null],
])('the host of %s that a certificate can be for: %s', (publicUrl, host) => {
  expect(publicHost({ publicUrl })).toBe(host);
});

import { expect, it } from 'vitest';
import { type LinkHostStatus, linkHostStatus } from '../../../src/domains/platform/link-hosts.ts';
import { publicHost } from '../../../src/domains/platform/platform.ts';
import { insertAccount, insertDomain, startStore } from '../../support/store.ts';

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

import { expect, it } from 'vitest';
import { isLinkHost } from '../../src/domains/link-hosts.ts';
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

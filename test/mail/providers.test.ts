import { expect, it } from 'vitest';
import * as z from 'zod';
import { readProgramFile } from '../../src/config/program-file.ts';
import { providerOfHosts } from '../../src/mail/providers.ts';

it.each([
  ['gmail.com', ['gmail-smtp-in.l.google.com'], 'Google'],
  ['gmail.com', [], 'Google'],
  ['customer.example', ['aspmx.l.google.com', 'alt1.aspmx.l.google.com'], 'Google'],
  ['customer.example', ['customer-example.mail.protection.outlook.com'], 'Microsoft'],
  ['customer.example', ['MX0A-001.PPHOSTED.COM.'], 'Proofpoint'],
  ['customer.example', ['mx00.kundenserver.de'], 'IONOS'],
  ['customer.example', ['mx1.mail.hoster.co.uk'], 'mail.hoster.co.uk'],
  ['customer.example', ['mx1.hoster.co.uk', 'mx2.hoster.co.uk'], 'hoster.co.uk'],
  // The connection of a subscriber.
  ['customer.example', ['82-64-1-2.subs.hoster.co.uk'], 'subs.hoster.co.uk'],
  ['customer.example', ['c-73-1-2-3.hsd1.ca.comcast.net'], 'hsd1.ca.comcast.net'],
  ['customer.example', ['mail.customer.example'], 'customer.example'],
  ['customer.example', ['notgoogle.com'], 'notgoogle.com'],
  ['customer.example', ['aspmx.l.google.com', 'alt4.aspmx.googlemail.com'], 'Google'],
  ['evil.example', ['www.google.com', 'mx.evil.example'], 'evil.example'],
  ['evil.example', ['mx.evil.example', 'www.google.com'], 'evil.example'],
  ['customer.example', [], 'customer.example'],
])('the mail of %s with the hosts %j is received by %s', (domain, names, provider) => {
  expect(
    providerOfHosts(
      domain,
      names.map((name) => ({ name })),
    ),
  ).toBe(provider);
});

it('are lists of domains', () => {
  const domains = z.array(z.string().regex(/^[a-z0-9-]+(?:\.[a-z0-9-]+)+$/)).min(1);
  const form = z.record(
    z.string(),
    z.strictObject({ domains: domains.optional(), hosts: domains.optional() }),
  );
  const providers = readProgramFile('providers.toml');
  expect(form.parse(providers)).toEqual(providers);
  for (const kind of ['domains', 'hosts'] as const) {
    const all = Object.values(form.parse(providers)).flatMap((provider) => provider[kind] ?? []);
    expect(all).toEqual([...new Set(all)]);
  }
});

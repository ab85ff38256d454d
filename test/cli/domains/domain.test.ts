import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { accountCommand } from '../../../src/cli/account.ts';
import { type CliContext, createContext, PARTIAL } from '../../../src/cli/context.ts';
import { domainCommand } from '../../../src/cli/domains/domain.ts';
import { zoneCommand } from '../../../src/cli/domains/zone.ts';
import { type DnsServer, type PublishedRecord, startDnsServer } from '../../support/dns-server.ts';
import { fixedKeys } from '../../support/rsa-keys.ts';
import { temporaryDir } from '../../support/store.ts';

/** Commands with a new data directory, for the platform mail.example.net that sends from 192.0.2.25. */
interface Shell {
  dns: DnsServer;
  domain(...args: string[]): Promise<Outcome>;
  zone(...args: string[]): Promise<Outcome>;
}

interface Outcome {
  status: number;
  out: string;
  err: string;
}

let shell: Shell;

beforeEach(async () => {
  const dns = await startDnsServer();
  onTestFinished(() => dns.close());
  const dir = temporaryDir();
  const file = join(dir, 'postrider.toml');
  writeFileSync(
    file,
    `hostname = "mail.example.net"
[data]
dir = ${JSON.stringify(join(dir, 'data'))}
[dns]
resolvers = ["${dns.address}"]
timeoutMs = 500
[[delivery.egress]]
name = "main"
address = "192.0.2.25"
`,
  );

  async function run(make: (context: CliContext) => Command, args: string[]): Promise<Outcome> {
    const out: string[] = [];
    const err: string[] = [];
    vi.spyOn(console, 'log').mockImplementation((text: string) => void out.push(text));
    vi.spyOn(console, 'error').mockImplementation((text: string) => void err.push(text));
    const context = createContext(() => file, { generateKey: fixedKeys() });
    try {
      await make(context).parseAsync(args, { from: 'user' });
    } finally {
      await context.close();
      vi.restoreAllMocks();
    }
    const status = Number(process.exitCode ?? 0);
    process.exitCode = undefined;
    return { status, out: out.join('\n'), err: err.join('\n') };
  }

  for (const id of ['one', 'two']) await run(accountCommand, ['create', '--name', id, '--id', id]);
  shell = { dns, domain: (...args) => run(domainCommand, args), zone: (...args) => run(zoneCommand, args) };
});

const add = (name: string, account = 'one', useCase = 'tx-local') =>
  shell.domain('add', name, '--account', account, '--use-case', useCase, '--json');

describe('postrider domain', () => {
  it('adds a domain with both lanes, and prints the records to publish', async () => {
    const { status, out } = await shell.domain(
      'add',
      'Example.org',
      '--account',
      'one',
      '--use-case',
      'tx-local',
    );
    expect(status).toBe(0);
    expect(out).toMatch(/^example\.org is registered: domain_\d+_[a-z0-9]{12}\n/);
    expect(out).toContain('TXT    example.org\n       v=spf1 include:spf.mail.example.net ~all\n');
    expect(out).toContain('MX     return-a.example.org\n       10 mail.example.net\n');
    expect(out).toMatch(/CNAME {2}ps\w+\._domainkey\.example\.org\n {7}alt_\w+\.dkim\.mail\.example\.net\n/);
  });

  it('asks once to publish the platform zone again', async () => {
    const args = ['add', 'example.org', '--account', 'one', '--use-case', 'tx-local'] as const;
    expect((await shell.domain(...args)).out).toContain('publish the output of "postrider zone" again');
    expect((await shell.domain(...args)).out).not.toContain('again');
  });

  it('prints a zone file that a name server can load, without placeholders', async () => {
    await add('example.org');
    const { out } = await shell.domain('show', 'example.org', '--format', 'bind');
    const published = out.split('\n').filter((line) => line !== '' && !line.startsWith(';'));
    expect(published.map((line) => line.split('\t')[3]).join(' ')).toBe('TXT TXT CNAME TXT MX CNAME TXT TXT');
    expect(out).not.toContain('_bimi');
    expect(out).not.toContain('Creation in progress');
  });

  it('rotates the key of a domain and deletes it', async () => {
    const { domainId, dnsRecords } = JSON.parse((await add('example.org')).out);
    const rotated = JSON.parse((await shell.domain('rotate-dkim', 'example.org', '--json')).out);
    expect(rotated.dnsRecords[0].name).not.toBe(dnsRecords[0].name);
    expect((await shell.domain('rotate-dkim', domainId)).out).toContain('already in progress');
    expect(await shell.domain('delete', 'example.org')).toMatchObject({
      status: 1,
      err: expect.stringContaining('Confirm with --yes.'),
    });
    expect((await shell.domain('delete', domainId, '--yes')).out).toBe(
      `example.org (${domainId}) is deleted`,
    );
    expect((await shell.domain('show', domainId)).status).toBe(1);
  });

  it('reports when the DMARC policy can be raised', async () => {
    await add('example.org');
    expect((await shell.domain('show', 'example.org')).out).toContain('No DMARC reports yet');
  });

  it('distinguishes a DNS server that fails from a missing record', async () => {
    await add('example.org');
    shell.dns.set('example.org', '*', 'SERVFAIL');
    const { status, out } = await shell.domain('verify', 'example.org');
    expect(status).toBe(PARTIAL);
    expect(out).toMatch(/^unknown SPF\n/m);
    expect(out).toMatch(/^missing DMARC\n/m);
  });

  it.each([
    ['example.org', 'nobody', 'tx-local', 'There is no account nobody'],
    ['example.org', 'one', 'tx-mars', 'There is no use case "tx-mars"; available: tx-local, mk-local'],
    ['co.uk', 'one', 'tx-local', 'is a public suffix'],
  ])('does not add %s for %s with %s', async (name, account, useCase, why) => {
    expect(await add(name, account, useCase)).toEqual({
      status: 1,
      out: '',
      err: expect.stringContaining(why),
    });
  });

  it('lists and shows domains', async () => {
    const { domainId } = JSON.parse((await add('example.org')).out);
    await add('example.com', 'two', 'mk-local');
    expect((await shell.domain('list')).out).toMatch(
      /example\.org[ │]+tx-local[ │]+PENDING[ │]+dkim spf dmarc mx[ │]+PENDING[ │]+one/,
    );
    expect(JSON.parse((await shell.domain('list', '--account', 'two', '--json')).out)).toMatchObject([
      { domain: 'example.com', useCaseId: 'mk-local', accountId: 'two', status: 'PENDING' },
    ]);
    for (const text of ['example.org', 'EXAMPLE.org.', domainId]) {
      expect(JSON.parse((await shell.domain('show', text, '--json')).out)).toMatchObject({
        domainId,
        dnsRecords: { length: 6 },
      });
    }
    expect((await shell.domain('show', 'example.org')).out).toMatch(/status +PENDING/);
  });

  it.each([[['list']], [['show', 'example.org']]])('fails for an unknown account: %j', async (args) => {
    expect(await shell.domain(...args, '--account', 'nobody')).toEqual({
      status: 1,
      out: '',
      err: 'postrider: There is no account nobody',
    });
  });

  it('asks for the id if a name is registered several times', async () => {
    await add('example.org');
    await add('example.org', 'one', 'mk-local');
    await add('example.org', 'two');
    const { status, err } = await shell.domain('show', 'example.org', '--account', 'one');
    expect(status).toBe(2);
    expect(err).toMatch(
      /registered 2 times; specify one by its id:\n {2}domain_\S+ {2}(tx|mk)-local {2}one\n/,
    );
    expect((await shell.domain('show', 'example.org', '--account', 'two')).status).toBe(0);
    expect(await shell.domain('show', 'example.net')).toMatchObject({
      status: 1,
      err: 'postrider: There is no domain example.net',
    });
  });

  it('verifies a domain, and reports missing records', async () => {
    const { dnsRecords } = JSON.parse((await add('example.org')).out) as { dnsRecords: PublishedRecord[] };
    shell.dns.publish(JSON.parse((await shell.zone('--json')).out));
    shell.dns.publish(dnsRecords.filter(({ type }) => type !== 'MX'));
    shell.dns.publish([{ name: 'example.org', type: 'TXT', value: 'v=spf1 mx -all' }]);
    const pending = await shell.domain('verify', 'example.org');
    expect(pending.status).toBe(PARTIAL);
    expect(pending.out).toMatch(
      /^The verification of example\.org is still pending: SPF and MX do not pass yet\.\n/,
    );
    expect(pending.out).toContain('ok      DKIM\n');
    expect(pending.out).toContain('wrong   SPF\n        There are 2 SPF records at example.org');
    expect(pending.out).toContain('        expected  v=spf1 mx include:spf.mail.example.net ~all\n');
    expect(pending.out).toContain('        found     v=spf1 mx -all\n');
    expect(pending.out).toContain('missing MX\n');

    shell.dns.remove('example.org');
    shell.dns.publish(dnsRecords.filter(({ type, name }) => type === 'MX' || name === 'example.org'));
    expect(JSON.parse((await shell.domain('verify', 'example.org', '--json')).out)).toMatchObject({
      message: 'example.org is verified: mail may be sent from it.',
      status: 'SUCCESS',
      altStatus: 'ACTIVE',
      checks: { length: 7 },
    });
    expect(JSON.parse((await shell.domain('show', 'example.org', '--json')).out)).toMatchObject({
      status: 'SUCCESS',
    });

    const bimi = 'v=BIMI1; l=https://logo.example.org/logo.svg';
    shell.dns.publish([{ name: 'default._bimi.example.org', type: 'TXT', value: bimi }]);
    shell.dns.set('logo.example.org', 'A', ['192.168.0.1']);
    const withLogo = await shell.domain('verify', 'example.org');
    expect(withLogo.status).toBe(0);
    expect(withLogo.out).toContain(
      'wrong   BIMI\n        The logo could not be fetched: logo.example.org has no public address.',
    );
  });
});

describe('postrider zone', () => {
  it('prints a zone file with full names, one key for each domain', async () => {
    await add('example.org');
    await add('example.com');
    const { status, out } = await shell.zone();
    expect(status).toBe(0);
    expect(out).toContain('; PTR records belong to the zone of the address');
    const lines = out
      .split('\n')
      .filter((line) => line.includes('\t'))
      .map((line) => line.split('\t'));
    expect(lines.map(([name, , , type]) => `${type} ${name}`)).toEqual([
      'A mail.example.net.',
      'A track.mail.example.net.',
      'MX mail.example.net.',
      'TXT mail.example.net.',
      'TXT spf.mail.example.net.',
      'TXT *._report._dmarc.mail.example.net.',
      expect.stringMatching(/^TXT alt_\w+\.dkim\.mail\.example\.net\.$/),
      expect.stringMatching(/^TXT alt_\w+\.dkim\.mail\.example\.net\.$/),
      'PTR ; 25.2.0.192.in-addr.arpa.',
    ]);
    expect(out).toContain('"v=spf1 ip4:192.0.2.25 ~all"');
  });

  it('prints the same as JSON', async () => {
    const records = JSON.parse((await shell.zone('--json')).out);
    expect(records).toContainEqual({
      name: 'mail.example.net',
      type: 'MX',
      value: 'mail.example.net',
      ttl: 3600,
      priority: 10,
    });
    expect(records.map((record: object) => Object.keys(record).length)).toEqual([4, 4, 5, 4, 4, 4, 4]);
  });
});

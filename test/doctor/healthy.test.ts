import { mkdirSync, renameSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CHECKS } from '../../src/doctor/checks.ts';
import { openForDoctor } from '../../src/doctor/open-database.ts';
import { createAuthority } from '../support/certificates.ts';
import { createOldDatabase } from '../support/old-database.ts';
import { ADDRESS, HOST, startHealthySetup } from './setup.ts';

describe('a healthy installation', () => {
  it.each(CHECKS.map(({ id }) => id))('%s finds no problem', async (id) => {
    const setup = await startHealthySetup();
    // The listener of the setup answers on loopback.
    if (id === 'listeners') setup.dns.set(HOST, 'A', ['127.0.0.1']);
    const findings = await setup.examine(id);
    // The directory of the test may be on any file system.
    const problems = findings.filter(
      ({ status, subject }) => status !== 'ok' && !subject.endsWith('file system'),
    );
    expect(problems).toEqual([]);
    expect(findings).not.toEqual([]);
  });
});

describe('a master key that systemd gives to the service', () => {
  it('is not missing in the data directory', async () => {
    const setup = await startHealthySetup();
    const { serviceKeyFile } = setup.machine;
    mkdirSync(dirname(serviceKeyFile));
    renameSync(setup.config.data.masterKeyFile, serviceKeyFile);
    expect(await setup.examine('data-directory')).toMatchObject([{ status: 'ok' }]);
  });
});

describe('an IPv6 source address in another text form', () => {
  it.each(['hostname', 'reverse-dns', 'platform-zone', 'spf', 'source-addresses'])(
    'is no problem of %s',
    async (id) => {
      const address6 = '2001:DB8:0::25';
      const setup = await startHealthySetup();
      setup.config.delivery.egress = [
        { name: 'main', publicAddress: ADDRESS, address6, pools: ['default', 'secondary'] },
      ];
      setup.machine.addresses = () => ['2001:db8::25'];
      setup.dns.set(HOST, 'AAAA', ['2001:db8::25']);
      setup.dns.set(`track.${HOST}`, 'AAAA', ['2001:db8::25']);
      setup.dns.set(`spf.${HOST}`, 'TXT', [`v=spf1 ip4:${ADDRESS} ip6:${address6} ~all`]);
      setup.dns.set(`5.2.${'0.'.repeat(22)}8.b.d.0.1.0.0.2.ip6.arpa`, 'PTR', [HOST]);
      expect((await setup.examine(id)).filter(({ status }) => status !== 'ok')).toEqual([]);
    },
  );
});

describe('an IPv6 address of the machine', () => {
  it('is no problem without address6: mail never leaves from it', async () => {
    const setup = await startHealthySetup();
    setup.config.delivery.egress = [];
    setup.machine.addresses = () => [ADDRESS, '2001:db8::25'];
    expect(await setup.examine('source-addresses')).toMatchObject([{ status: 'ok' }]);
  });
});

describe('a listener on loopback', () => {
  it('is no problem when a redirection leads to it', async () => {
    const setup = await startHealthySetup({ settings: { 'mx.listen': '127.0.0.1:2525' } });
    setup.dns.set(HOST, 'A', ['127.0.0.1', '192.0.2.25']);
    setup.machine.addresses = () => ['10.0.0.5'];
    const findings = (await setup.examine('listeners')).filter(({ subject }) => /mx/i.test(subject));
    expect(findings.map(({ status }) => status)).toEqual(['ok', 'unknown']);
  });
});

describe('a database with another schema', () => {
  it('is reported with the command that migrates it', async () => {
    const setup = await startHealthySetup();
    setup.config.data.dir = join(setup.dir, 'old');
    createOldDatabase(setup.config.data.dir);
    const { database, close } = openForDoctor(setup.config.data.dir);
    close();
    setup.setDatabase(database);
    const [finding] = await setup.examine('database-integrity');
    expect(finding).toMatchObject({ status: 'warning', fix: expect.stringContaining('postrider migrate') });
    expect(await setup.examine('queue')).toMatchObject([
      { status: 'unknown', reason: expect.stringContaining('database is not open') },
    ]);
  });
});

describe('an authority of another organization', () => {
  it('is not trusted for the public pages', async () => {
    const other = createAuthority('Other');
    const setup = await startHealthySetup({ pageCertificate: (_, names) => other.issue(names) });
    const findings = await setup.examine('listeners');
    expect(findings).toContainEqual(
      expect.objectContaining({ status: 'failure', reason: expect.stringContaining('UNABLE_TO_') }),
    );
  });
});

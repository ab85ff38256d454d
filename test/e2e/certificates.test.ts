import { statSync } from 'node:fs';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openDatabase } from '../../src/store/database.ts';
import { createTables, type Tables } from '../../src/store/tables.ts';
import type { VerifiedDomain } from '../support/api-client.ts';
import { HOSTNAME, type RunningDaemon, startDaemon } from '../support/daemon.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { requestHttps } from '../support/https-client.ts';
import { type Pebble, startPebble } from '../support/pebble.ts';
import { requirePrograms } from '../support/required-programs.ts';
import { verifiedDomain } from '../support/verified-domain.ts';

/*
 * HTTPS with certificates that the daemon obtains itself, from a real authority.
 *
 *   test ──HTTPS──▶ postrider, public.tls.listen ──ACME──▶ Pebble
 *                   postrider, public.listen ◀──HTTP-01──────┘ │
 *                                                              ▼
 *      name server: track.mx.postrider.example, t.kunde.example ▶ here; link.fremd.example ▶ elsewhere
 */
const required = requirePrograms('pebble');

const TRACK = `track.${HOSTNAME}`;
const CUSTOM = 't.kunde.example';
/** The domain is registered, its link host leads elsewhere. */
const ASTRAY = 'link.fremd.example';

describe.skipIf(required.missing)(`certificates of the public pages${required.reason}`, () => {
  let dns: DnsServer;
  let pebble: Pebble;
  let daemon: RunningDaemon;
  let httpPort: number;
  let httpsPort: number;
  let root: string;
  let domainId: string;

  beforeAll(async () => {
    dns = await startDnsServer();
    httpPort = await freePort();
    httpsPort = await freePort();
    pebble = await startPebble({ dns: dns.address, httpPort });
    root = await pebble.root();
    // What browsers would trust, and so the check of tracking hosts.
    const trusted = pebble.caFile.replace(/[^/]+$/, 'root.pem');
    await writeFile(trusted, root);
    dns.set(TRACK, 'A', ['127.0.0.1']);
    daemon = await startDaemon(
      {
        'dns.resolvers': [dns.address],
        // All that the platform's zone leads to is this machine.
        'delivery.egress': [{ name: 'main', publicAddress: '127.0.0.1' }],
        'public.listen': `127.0.0.1:${httpPort}`,
        'public.url': `https://${TRACK}:${httpsPort}`,
        'public.tls.listen': `127.0.0.1:${httpsPort}`,
        'public.tls.agreeToTerms': true,
        'public.tls.email': 'operator@postrider.example',
        'public.tls.directory': pebble.directory,
        'public.tls.directoryCaFile': pebble.caFile,
      },
      { NODE_EXTRA_CA_CERTS: trusted },
    );
  });
  afterAll(async () => {
    await daemon?.stop();
    await pebble?.stop();
    await dns?.close();
  });

  const visit = (host: string, path = '/robots.txt', ca = root) =>
    requestHttps(`https://${host}:${httpsPort}${path}`, { ca });

  /** Looks into the database, or changes it, while the daemon is down. */
  function inDatabase<Value>(look: (tables: Tables) => Value): Value {
    const db = openDatabase(daemon.dataDir);
    try {
      return look(createTables(db));
    } finally {
      db.close();
    }
  }
  const makeDue = (host: string) =>
    inDatabase(({ certificates }) => {
      const row = certificates.get(host);
      if (row === null) throw new Error(`nothing is known of ${host}`);
      certificates.put({ ...row, due_at: 0, failures: 0 });
    });
  const failuresOf = () => daemon.log().split('no certificate could be obtained').length - 1;

  it('answers over HTTPS under the host of public.url, asked for before anybody came', async () => {
    await eventually('the certificate', () => daemon.log().includes('certificate obtained'));
    const { status, body, certificate } = await visit(TRACK);
    expect([status, body]).toEqual([200, 'User-agent: *\nDisallow: /\n']);
    expect(certificate.subjectaltname).toBe(`DNS:${TRACK}`);
    expect(pebble.orders()).toEqual(Array.from({ length: pebble.orders().length }, () => TRACK));
    expect(await daemon.metric('postrider_certificate_orders_total')).toBe(1);
  });

  it('answers the same pages over HTTP, and nothing under challenges that nobody put up', async () => {
    const plain = await fetch(`http://127.0.0.1:${httpPort}/robots.txt`);
    expect(await plain.text()).toBe('User-agent: *\nDisallow: /\n');
    const challenge = await fetch(`http://127.0.0.1:${httpPort}/.well-known/acme-challenge/guessed`);
    expect(challenge.status).toBe(404);
  });

  it('obtains the certificate of a custom tracking host when the verification looks for it', async () => {
    domainId = (await verifiedDomain(daemon, dns, 'kunde.example')).domainId;
    dns.set(CUSTOM, 'CNAME', [TRACK]);
    await daemon.api.call('PATCH', `/web-setup/domains/${domainId}`, { body: { trackingDomain: CUSTOM } });
    const check = await eventually('the tracking host to be verified', async () => {
      const { data } = await daemon.api.post<VerifiedDomain>(`/web-setup/domains/${domainId}/verify`);
      const found = data.checks.find((each) => each.check === 'tracking');
      return found?.passed ? found : null;
    });
    expect(check.passed).toBe(true);
    expect(pebble.orders()).toContain(CUSTOM);
    expect((await visit(CUSTOM)).certificate.subjectaltname).toBe(`DNS:${CUSTOM}`);
    // Each name has its own: nobody's certificate names another customer.
    expect((await visit(TRACK)).certificate.subjectaltname).toBe(`DNS:${TRACK}`);
  });

  it.each([
    ['is not ours', 'shop.stranger.example'],
    ['is ours to ask for, but leads elsewhere', ASTRAY],
    ['only looks like ours', `x.${CUSTOM}`],
  ])('never asks for a name that %s', async (_, host) => {
    dns.set(ASTRAY, 'A', ['192.0.2.80']);
    await daemon.api.put('/web-setup/domains', { domain: 'fremd.example', useCaseId: 'mk-local' });
    for (const name of ['shop.stranger.example', `x.${CUSTOM}`]) dns.set(name, 'A', ['127.0.0.1']);
    const before = pebble.orders().length;
    await expect(visit(host)).rejects.toThrow();
    expect(pebble.orders()).toHaveLength(before);
    expect(pebble.orders()).not.toContain(host);
  });

  it('keeps keys sealed, in files that are nobody else’s', async () => {
    const files = (await readdir(daemon.dataDir)).filter((name) => name.startsWith('postrider.db'));
    for (const file of files.map((name) => join(daemon.dataDir, name))) {
      expect([file, (await readFile(file)).includes('PRIVATE KEY')]).toEqual([file, false]);
      expect([file, statSync(file).mode & 0o077]).toEqual([file, 0]);
    }
    expect(files).toContain('postrider.db');
    expect(daemon.log()).not.toContain('PRIVATE KEY');
  });

  it('asks for nothing after a restart: what is there is used', async () => {
    const before = pebble.orders().length;
    const { serialNumber } = (await visit(TRACK)).certificate;
    await daemon.kill('SIGTERM');
    await daemon.restart();
    expect((await visit(TRACK)).certificate.serialNumber).toBe(serialNumber);
    expect((await visit(CUSTOM)).status).toBe(200);
    expect(pebble.orders()).toHaveLength(before);
  });

  it('keeps the old one when the authority is gone, and waits before it asks again, restart or not', async () => {
    const { serialNumber } = (await visit(TRACK)).certificate;
    await daemon.kill('SIGTERM');
    makeDue(TRACK);
    await pebble.kill();
    await daemon.restart();
    await eventually('the failure', () => failuresOf() > 0);
    expect(daemon.log()).toMatch(/no certificate could be obtained: [^"]*ECONNREFUSED/);
    expect((await visit(TRACK)).certificate.serialNumber).toBe(serialNumber);

    await daemon.kill('SIGTERM');
    const row = inDatabase(({ certificates }) => certificates.get(TRACK));
    expect(row?.failures).toBe(1);
    expect(row?.due_at).toBeGreaterThan(Date.now() + 8 * 60_000);
    await daemon.restart();
    expect((await visit(TRACK)).certificate.serialNumber).toBe(serialNumber);
    expect(failuresOf()).toBe(0);
  });

  it('renews, and uses the new one without a restart; also with an authority that has forgotten us', async () => {
    const { serialNumber } = (await visit(TRACK)).certificate;
    await pebble.restart();
    await daemon.kill('SIGTERM');
    makeDue(TRACK);
    await daemon.restart();
    const renewed = await pebble.root();
    const { certificate } = await eventually('the new certificate', () =>
      visit(TRACK, '/robots.txt', renewed).catch(() => null),
    );
    expect(certificate.serialNumber).not.toBe(serialNumber);
    expect(failuresOf()).toBe(0);
  });

  it('says in the authority’s own words why it got none', async () => {
    await daemon.kill('SIGTERM');
    makeDue(TRACK);
    dns.set(TRACK, 'A', 'NXDOMAIN');
    await daemon.restart();
    await eventually('the failure', () => failuresOf() > 0);
    expect(daemon.log()).toMatch(
      /no certificate could be obtained: [^\n]*could not resolve[^\n]*acme-challenge/,
    );
    expect((await visit(TRACK, '/robots.txt', await pebble.root())).status).toBe(200);
    dns.set(TRACK, 'A', ['127.0.0.1']);
  });

  it('stops in good order while the authority is silent', async () => {
    await daemon.kill('SIGTERM');
    makeDue(TRACK);
    dns.set(TRACK, 'A', 'silent');
    await daemon.restart();
    const exit = await daemon.kill('SIGTERM');
    expect(exit.code).toBe(0);
    await daemon.restart();
  });
});

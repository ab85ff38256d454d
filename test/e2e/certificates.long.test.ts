// Long: orders and renews certificates across restarts and an outage of the authority.
import { statSync } from 'node:fs';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openDatabase } from '../../src/store/database/database.ts';
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
 * HTTPS with certificates that the daemon obtains from an ACME authority (RFC 8555).
 *
 *   test ──HTTPS──▶ postrider, public.tls.listen ──ACME──▶ Pebble
 *                   postrider, public.listen ◀──HTTP-01──────┘ │
 *                                                              ▼
 *      name server: track.mx.postrider.example, t.kunde.example ▶ 127.0.0.1; link.fremd.example ▶ 192.0.2.80
 */
const required = requirePrograms('pebble');

const TRACK = `track.${HOSTNAME}`;
const CUSTOM = 't.kunde.example';
/** The link host of a registered domain that resolves to another server. */
const MISDIRECTED = 'link.fremd.example';

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
    // The check of tracking hosts trusts the authority, as browsers would.
    const trusted = pebble.caFile.replace(/[^/]+$/, 'root.pem');
    await writeFile(trusted, root);
    dns.set(TRACK, 'A', ['127.0.0.1']);
    daemon = await startDaemon(
      {
        'dns.resolvers': [dns.address],
        // The platform's zone points to this machine.
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

  const getPage = (host: string, path = '/robots.txt', ca = root) =>
    requestHttps(`https://${host}:${httpsPort}${path}`, { ca });

  /** Reads or changes the database while the daemon is stopped. */
  function inDatabase<Value>(use: (tables: Tables) => Value): Value {
    const db = openDatabase(daemon.dataDir);
    try {
      return use(createTables(db));
    } finally {
      db.close();
    }
  }
  const makeDue = (host: string) =>
    inDatabase(({ certificates }) => {
      const row = certificates.get(host);
      if (row === null) throw new Error(`${host} has no certificate row`);
      certificates.put({ ...row, due_at: 0, failures: 0 });
    });
  /** `eventually`, with the log of the daemon in its error. */
  const awaited = <Value>(what: string, probe: () => Value | null | false) =>
    eventually(what, probe).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${daemon.log().slice(-4000)}`, { cause: error });
    });
  const failuresOf = () => daemon.log().split('certificate order failed').length - 1;

  it('obtains the certificate for the host of public.url without a request', async () => {
    await eventually('the certificate', () => daemon.log().includes('certificate obtained'));
    const { status, body, certificate } = await getPage(TRACK);
    expect([status, body]).toEqual([200, 'User-agent: *\nDisallow: /\n']);
    expect(certificate.subjectaltname).toBe(`DNS:${TRACK}`);
    expect(new Set(pebble.orders())).toEqual(new Set([TRACK]));
    expect(await daemon.metric('postrider_certificate_orders_total')).toBe(1);
  });

  it('serves the same pages over HTTP, and 404 for an unknown challenge', async () => {
    const plain = await fetch(`http://127.0.0.1:${httpPort}/robots.txt`);
    expect(await plain.text()).toBe('User-agent: *\nDisallow: /\n');
    const challenge = await fetch(`http://127.0.0.1:${httpPort}/.well-known/acme-challenge/guessed`);
    expect(challenge.status).toBe(404);
  });

  it('obtains the certificate of a custom tracking host when the domain is verified', async () => {
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
    expect((await getPage(CUSTOM)).certificate.subjectaltname).toBe(`DNS:${CUSTOM}`);
    // Each host has a separate certificate, so that no certificate names another customer.
    expect((await getPage(TRACK)).certificate.subjectaltname).toBe(`DNS:${TRACK}`);
  });

  it.each([
    ['is not a link host', 'shop.unknown.example'],
    ['resolves to another server', MISDIRECTED],
    ['is a subdomain of a link host', `x.${CUSTOM}`],
  ])('orders no certificate for a name that %s', async (_, host) => {
    dns.set(MISDIRECTED, 'A', ['192.0.2.80']);
    await daemon.api.put('/web-setup/domains', { domain: 'fremd.example', useCaseId: 'mk-local' });
    for (const name of ['shop.unknown.example', `x.${CUSTOM}`]) dns.set(name, 'A', ['127.0.0.1']);
    const before = pebble.orders().length;
    await expect(getPage(host)).rejects.toThrow();
    expect(pebble.orders()).toHaveLength(before);
    expect(pebble.orders()).not.toContain(host);
  });

  it('stores private keys encrypted, in files that only the owner can read', async () => {
    const files = (await readdir(daemon.dataDir)).filter((name) => name.startsWith('postrider.db'));
    for (const file of files.map((name) => join(daemon.dataDir, name))) {
      expect([file, (await readFile(file)).includes('PRIVATE KEY')]).toEqual([file, false]);
      expect([file, statSync(file).mode & 0o077]).toEqual([file, 0]);
    }
    expect(files).toContain('postrider.db');
    expect(daemon.log()).not.toContain('PRIVATE KEY');
  });

  it('uses its stored certificates after a restart', async () => {
    const before = pebble.orders().length;
    const { serialNumber } = (await getPage(TRACK)).certificate;
    await daemon.kill('SIGTERM');
    await daemon.restart();
    expect((await getPage(TRACK)).certificate.serialNumber).toBe(serialNumber);
    expect((await getPage(CUSTOM)).status).toBe(200);
    expect(pebble.orders()).toHaveLength(before);
  });

  it('uses the old certificate while the authority is down, and waits before the next order, also across a restart', async () => {
    const { serialNumber } = (await getPage(TRACK)).certificate;
    await daemon.kill('SIGTERM');
    makeDue(TRACK);
    await pebble.kill();
    await daemon.restart();
    await eventually('the failure', () => failuresOf() > 0);
    expect(daemon.log()).toMatch(/"reason":"[^"]*ECONNREFUSED[^\n]*certificate order failed/);
    expect((await getPage(TRACK)).certificate.serialNumber).toBe(serialNumber);

    await daemon.kill('SIGTERM');
    const row = inDatabase(({ certificates }) => certificates.get(TRACK));
    expect(row?.failures).toBe(1);
    expect(row?.due_at).toBeGreaterThan(Date.now() + 8 * 60_000);
    await daemon.restart();
    expect((await getPage(TRACK)).certificate.serialNumber).toBe(serialNumber);
    expect(failuresOf()).toBe(0);
  });

  it('renews with an authority that lost the account, and uses the new certificate without a restart', async () => {
    const { serialNumber } = (await getPage(TRACK)).certificate;
    await pebble.restart();
    await daemon.kill('SIGTERM');
    makeDue(TRACK);
    await daemon.restart();
    const renewed = await pebble.root();
    const { certificate } = await eventually('the new certificate', () =>
      getPage(TRACK, '/robots.txt', renewed).catch(() => null),
    );
    expect(certificate.serialNumber).not.toBe(serialNumber);
    expect(failuresOf()).toBe(0);
  });

  it('logs the error of the authority', async () => {
    await daemon.kill('SIGTERM');
    makeDue(TRACK);
    dns.set(TRACK, 'A', 'NXDOMAIN');
    await daemon.restart();
    await awaited('the failure', () => failuresOf() > 0);
    expect(daemon.log()).toMatch(/could not resolve[^\n]*acme-challenge[^\n]*certificate order failed/);
    expect((await getPage(TRACK, '/robots.txt', await pebble.root())).status).toBe(200);
    dns.set(TRACK, 'A', ['127.0.0.1']);
  });

  it('abandons a pending order at a stop, and orders again at the next start', async () => {
    await daemon.kill('SIGTERM');
    makeDue(TRACK);
    dns.set(TRACK, 'A', 'silent');
    const before = pebble.orders().length;
    await daemon.restart();
    await awaited('the validation', () => pebble.orders().length > before);
    const exit = await daemon.kill('SIGTERM');
    expect(exit.code).toBe(0);
    expect(daemon.log()).toContain('certificate order abandoned');
    expect(inDatabase(({ certificates }) => certificates.get(TRACK))).toMatchObject({
      failures: 0,
      last_error: expect.anything(),
    });

    dns.set(TRACK, 'A', ['127.0.0.1']);
    await daemon.restart();
    await eventually('the certificate', () => daemon.log().includes('certificate obtained'));
    expect(failuresOf()).toBe(0);
  });
});

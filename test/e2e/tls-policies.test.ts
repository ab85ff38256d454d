import { createHash, randomInt } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { publicKeyInfoOf } from '../../src/delivery/worker/tls.ts';
import { type Certificate, createAuthority, derOf, selfSigned } from '../support/certificates.ts';
import { type RunningDaemon, startDaemon } from '../support/daemon.ts';
import { type DnsServer, startDnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { type PolicyHost, policyText, startPolicyHost } from '../support/policy-host.ts';
import { SHORT_MAIL } from '../support/recipients.ts';
import { requirePrograms } from '../support/required-programs.ts';
import { type SignedZones, startSignedZones } from '../support/signed-zones.ts';
import { type Sink, startSink } from '../support/smtp-sink.ts';
import { verifiedDomain } from '../support/verified-domain.ts';

/*
 * TLS policies that receivers publish, with real certificates, a zone signed by Knot behind a validating Unbound, and a
 * policy host on port 443 of a loopback address.
 *
 *   postrider ──DNS──▶ Unbound ──▶ Knot (signed.example; bogus.example, whose trust anchor is wrong)
 *                              └─▶ programmable name server (all other names, insecure)
 *             ──HTTPS─▶ mta-sts.<domain>
 *             ──SMTP──▶ one sink for each case, all on one port
 */
const required = requirePrograms('knot', 'unbound', 'root');

const authority = createAuthority();
const unknown = createAuthority('An authority that nobody trusts');
const YESTERDAY = new Date(Date.now() - 86_400_000);

/** `tls` of the sink, and the TLSA records of the host. */
interface DaneCase {
  tls: Certificate | null;
  tlsa: string[];
}

const own = (name: string) => selfSigned([`mx.${name}.signed.example`]);
const VALID = own('valid');
const EXPIRED = authority.issue(['elsewhere.example'], YESTERDAY);
const ANCHORED = unknown.issue(['mx.anchor.signed.example']);

const DANE: Record<string, DaneCase> = {
  valid: { tls: VALID, tlsa: [tlsa(3, VALID)] },
  expired: { tls: EXPIRED, tlsa: [tlsa(3, EXPIRED)] },
  anchor: { tls: { key: ANCHORED.key, cert: ANCHORED.cert + unknown.cert }, tlsa: [tlsa(2, unknown)] },
  invalid: { tls: own('invalid'), tlsa: [tlsa(3, VALID)] },
  unencrypted: { tls: null, tlsa: [tlsa(3, VALID)] },
  unusable: { tls: own('unusable'), tlsa: [`TLSA 1 1 1 ${'ab'.repeat(32)}`] },
  missing: { tls: null, tlsa: [] },
  bogus: { tls: own('bogus'), tlsa: ['CNAME tlsa.bogus.example.'] },
};

/** `policy`: null: the domain announces one that its policy host does not have. */
interface StsCase {
  tls: Certificate | null;
  policy: string | null;
}

const inPolicy = (mode: 'enforce' | 'testing' | 'none', name: string) =>
  policyText(mode, [`mx.${name}.example`]);
const STS: Record<string, StsCase> = {
  enforced: { tls: authority.issue(['mx.enforced.example']), policy: inPolicy('enforce', 'enforced') },
  outdated: {
    tls: authority.issue(['mx.outdated.example'], YESTERDAY),
    policy: inPolicy('enforce', 'outdated'),
  },
  mismatched: {
    tls: authority.issue(['mx.mismatched.example']),
    policy: policyText('enforce', ['*.other.example']),
  },
  plain: { tls: null, policy: inPolicy('enforce', 'plain') },
  testing: { tls: selfSigned(['mx.testing.example']), policy: inPolicy('testing', 'testing') },
  none: { tls: selfSigned(['mx.none.example']), policy: inPolicy('none', 'none') },
  unavailable: { tls: selfSigned(['mx.unavailable.example']), policy: null },
};

function tlsa(usage: 2 | 3, certificate: { cert: string }): string {
  const key = publicKeyInfoOf(derOf(certificate.cert)) ?? Buffer.alloc(0);
  return `TLSA ${usage} 1 1 ${createHash('sha256').update(key).digest('hex')}`;
}

describe.skipIf(required.missing)(`published TLS policies${required.reason}`, () => {
  let dir: string;
  let dns: DnsServer;
  let signed: SignedZones;
  let policies: PolicyHost;
  let daemon: RunningDaemon;
  const sinks = new Map<string, Sink>();

  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), 'postrider-tls-'));
    const caFile = join(dir, 'authority.pem');
    writeFileSync(caFile, authority.cert);
    for (const [index, [name, { tls }]] of Object.entries({ ...DANE, ...STS }).entries()) {
      const port = [...sinks.values()][0]?.port ?? 0;
      sinks.set(name, await startSink({ host: `127.0.0.${index + 10}`, port, tls }));
    }
    const port = sinkOf('valid').port;
    dns = await startDnsServer();
    // A port below 1024 at an address that no other test uses.
    policies = await startPolicyHost({ address: `127.${randomInt(1, 255)}.${randomInt(255)}.7`, port: 443 });
    for (const [name, { policy }] of Object.entries(STS)) {
      const domain = `${name}.example`;
      dns.set(domain, 'MX', [`10 mx.${domain}`]);
      dns.set(`mx.${domain}`, 'A', [sinkOf(name).host]);
      dns.set(`_mta-sts.${domain}`, 'TXT', { values: ['v=STSv1; id=1;'], ttl: 1 });
      dns.set(`mta-sts.${domain}`, 'A', { values: [policies.address], ttl: 1 });
      if (policy !== null) policies.serve(domain, authority.issue([`mta-sts.${domain}`]), policy);
    }
    const lines = Object.entries(DANE).flatMap(([name, { tlsa: records }]) => [
      `${name}.signed.example. 60 MX 10 mx.${name}.signed.example.`,
      `mx.${name}.signed.example. 60 A ${sinkOf(name).host}`,
      ...records.map((record) => `_${port}._tcp.mx.${name}.signed.example. 60 ${record}`),
    ]);
    signed = await startSignedZones(
      dns.address,
      { 'signed.example': lines, 'bogus.example': [`tlsa.bogus.example. 60 ${tlsa(3, VALID)}`] },
      { bogus: ['bogus.example'] },
    );
    daemon = await startDaemon({
      'dns.resolvers': [signed.address],
      'delivery.port': port,
      'delivery.allowPrivateNetworks': true,
      'delivery.tls.caFile': caFile,
    });
    await verifiedDomain(daemon, dns, 'kunde.example');
  });
  afterAll(async () => {
    await daemon?.stop();
    await signed?.stop();
    await policies?.close();
    for (const sink of sinks.values()) await sink.close();
    await dns?.close();
    rmSync(dir, { recursive: true, force: true });
  });

  function sinkOf(name: string): Sink {
    const sink = sinks.get(name);
    if (sink === undefined) throw new Error(`there is no sink ${name}`);
    return sink;
  }

  /** Sends a message and returns its last attempt. */
  async function attemptTo(domain: string) {
    const { data } = await daemon.api.send({ ...SHORT_MAIL, from: 'a@kunde.example', to: `ada@${domain}` });
    const { timeline } = await eventually(`an attempt of mail to ${domain}`, async () => {
      const message = await daemon.api.message(data.messageId);
      return message.status === 'delivered' || message.status === 'deferred' ? message : null;
    });
    return timeline.find(({ type }) => type === 'attempt');
  }

  const delivered = (tls: object | null) => ({ action: 'deliver', sessions: [{ tls, error: null }] });
  const deferred = (error: RegExp) => ({
    action: 'defer',
    classification: 'tls-failed',
    reply: { code: 454, enhanced: '4.7.5', text: expect.stringMatching(error) },
    sessions: [{ tls: null, reply: null, error: expect.stringMatching(error) }],
  });

  const byDane = {
    protocol: 'TLSv1.3',
    verified: true,
    verification: 'dane',
    policy: 'verified',
    requiredBy: 'dane',
  };
  it.each([
    ['valid', 'delivers to a self-signed certificate that a record 3 1 1 matches', delivered(byDane)],
    [
      'expired',
      'delivers to an expired certificate of another name that a record 3 1 1 matches',
      delivered(byDane),
    ],
    ['anchor', 'delivers to a certificate of an authority that a record 2 1 1 matches', delivered(byDane)],
    [
      'invalid',
      'defers if no record matches',
      deferred(/does not match the TLSA records of _\d+\._tcp\.mx\.invalid/),
    ],
    [
      'unencrypted',
      'defers if the server does not offer TLS',
      deferred(/does not offer STARTTLS \(required by the TLSA records/),
    ],
    [
      'bogus',
      'defers if the records are bogus',
      deferred(/TLSA records of .* could not be looked up \(ESERVFAIL\)/),
    ],
    ['missing', 'delivers in plain text if there are provably no records', delivered(null)],
    [
      'unusable',
      'delivers encrypted if no record is usable',
      delivered({ verification: 'none', policy: 'required', requiredBy: 'dane' }),
    ],
  ])('DANE, %s: %s', async (name, _, expected) => {
    expect(await attemptTo(`${name}.signed.example`)).toMatchObject(expected);
    expect(sinkOf(name).count).toBe(expected.action === 'deliver' ? 1 : 0);
  });

  const unverified = { verification: 'none', policy: 'opportunistic', requiredBy: 'default' };
  const verified = { verification: 'webpki', policy: 'verified', requiredBy: 'mta-sts' };
  it.each([
    ['enforced', 'delivers to a valid certificate', delivered(verified)],
    [
      'outdated',
      'defers with an expired certificate',
      deferred(/certificate has expired \(required by the MTA-STS policy of outdated\.example\)/),
    ],
    [
      'mismatched',
      'defers if no host is in the policy',
      deferred(/mx\.mismatched\.example is not a mail host in the MTA-STS policy/),
    ],
    [
      'plain',
      'defers if the server does not offer TLS',
      deferred(/does not offer STARTTLS \(required by the MTA-STS policy of plain\.example\)/),
    ],
    ['testing', 'delivers to an invalid certificate in mode testing', delivered(unverified)],
    ['none', 'delivers to an invalid certificate in mode none', delivered(unverified)],
    ['unavailable', 'delivers without a policy if it cannot be fetched', delivered(unverified)],
  ])('MTA-STS, %s: %s', async (name, _, expected) => {
    expect(await attemptTo(`${name}.example`)).toMatchObject(expected);
    expect(sinkOf(name).count).toBe(expected.action === 'deliver' ? 1 : 0);
  });

  it('keeps a policy after kill -9 while its host is unavailable and its announcement is gone', async () => {
    await policies.close();
    dns.remove('_mta-sts.enforced.example');
    sinkOf('enforced').program({ tls: selfSigned(['mx.enforced.example']) });
    await daemon.kill('SIGKILL');
    await daemon.restart();
    expect(await attemptTo('enforced.example')).toMatchObject(
      deferred(/self-signed certificate \(required by the MTA-STS policy of enforced\.example\)/),
    );
    expect(sinkOf('enforced').count).toBe(1);
  });

  it('shows policy and verification on the command line, in the log and in the metrics', async () => {
    const listed = await daemon.cli('message', 'list', '--recipient', 'ada@valid.signed.example', '--json');
    const [{ messageId }] = JSON.parse(listed);
    expect(await daemon.cli('message', 'show', messageId)).toContain(
      'verified (dane); policy verified, required by dane',
    );
    await attemptTo('valid.signed.example');
    expect(daemon.log()).toMatch(/"tlsVerification":"dane","tlsRequiredBy":"dane"/);
    const metrics = await (await fetch(`${daemon.baseUrl}/metrics`)).text();
    expect(metrics).toMatch(
      /postrider_tls_sessions_total\{policy="mta-sts",result="certificate-not-trusted"\} 1/,
    );
    expect(metrics).toMatch(/postrider_mta_sts_policies 6/);
  });

  it('publishes the key that signs TLS reports', async () => {
    const zone: { name: string; value: string }[] = JSON.parse(await daemon.cli('zone', '--json'));
    const record = zone.find(({ name }) => name.startsWith('tlsrpt._domainkey.'));
    expect(record?.value).toMatch(/^v=DKIM1; k=rsa; s=tlsrpt; p=/);
  });
});

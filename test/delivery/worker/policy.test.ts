import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type {
  DanePolicy,
  HostPolicy,
  StsHostPolicy,
  TlsaAssociation,
} from '../../../src/delivery/worker/protocol.ts';
import { publicKeyInfoOf } from '../../../src/delivery/worker/tls.ts';
import { type Certificate, createAuthority, derOf, selfSigned } from '../../support/certificates.ts';
import type { Sink } from '../../support/smtp-sink.ts';
import { client, deliver, host, job, lastError, sink, sinks, summary } from './setup.ts';

const NAME = 'mx1.example.test';
const authority = createAuthority();
const VALID = authority.issue([NAME]);
const EXPIRED = authority.issue([NAME], new Date(Date.now() - 86_400_000));
const OTHER_NAME = authority.issue(['elsewhere.test']);
const SELF_SIGNED = selfSigned([NAME]);
const UNKNOWN_AUTHORITY = createAuthority('An authority that nobody knows');

const trusting = () => client({}, { authorities: [authority.cert] });

/** A server certificate followed by that of its issuer. */
const withIssuer = (own: Certificate, issuer: { cert: string }): Certificate => ({
  key: own.key,
  cert: own.cert + issuer.cert,
});

function tlsa(usage: 2 | 3, certificate: { cert: string }): TlsaAssociation {
  const key = publicKeyInfoOf(derOf(certificate.cert)) ?? Buffer.alloc(0);
  const data = createHash('sha256').update(key).digest('hex');
  return { usage, selector: 1, matchingType: 1, data };
}

function dane(records: TlsaAssociation[], changes: Partial<DanePolicy> = {}): DanePolicy {
  return { kind: 'dane', base: NAME, tlsaName: `_25._tcp.${NAME}`, names: [NAME], records, ...changes };
}

function sts(mode: StsHostPolicy['mode'], fault?: StsHostPolicy['fault']): StsHostPolicy {
  return { kind: 'mta-sts', domain: 'example.test', mode, ...(fault === undefined ? {} : { fault }) };
}

const jobWith = (to: Sink, policy: HostPolicy, changes: Parameters<typeof job>[1] = {}) =>
  job(to, { hosts: [{ ...host(NAME, to.host), policy }], ...changes });

describe('DANE', () => {
  const ANCHORED = withIssuer(UNKNOWN_AUTHORITY.issue([NAME]), UNKNOWN_AUTHORITY);
  const MATCHES: [what: string, certificate: Certificate, records: TlsaAssociation[]][] = [
    ['3 1 1 of a self-signed certificate', SELF_SIGNED, [tlsa(3, SELF_SIGNED)]],
    ['3 1 1 of an expired certificate', EXPIRED, [tlsa(3, EXPIRED)]],
    ['3 1 1 of a certificate for another name', OTHER_NAME, [tlsa(3, OTHER_NAME)]],
    ['2 1 1 of an unknown authority', ANCHORED, [tlsa(2, UNKNOWN_AUTHORITY)]],
    ['one of several records', ANCHORED, [tlsa(3, SELF_SIGNED), tlsa(2, UNKNOWN_AUTHORITY)]],
  ];
  it.each(MATCHES)('delivers with %s', async (_, certificate, records) => {
    const to = await sink({ tls: certificate });
    const by = trusting();
    for (let round = 0; round < 3; round++) {
      const report = await deliver(by, jobWith(to, dane(records), { idleMs: 0 }));
      expect(summary(report)).toBe('replied dot 250');
      expect(report.sessions).toMatchObject([
        {
          tls: { verified: true, verification: 'dane', policy: 'verified', requiredBy: 'dane' },
          tlsResult: { failure: null },
        },
      ]);
    }
    expect(to.count).toBe(3);
    expect(to.messages[0]?.tls?.servername).toBe(NAME);
  });

  const ANCHOR = [tlsa(2, UNKNOWN_AUTHORITY)];
  const MISMATCHES: [what: string, certificate: Certificate, records: TlsaAssociation[]][] = [
    ['3 1 1 of another certificate', VALID, [tlsa(3, SELF_SIGNED)]],
    ['2 1 1 of an authority that did not issue the certificate', withIssuer(VALID, authority), ANCHOR],
    // Usages 0 and 1 are never passed to a worker.
    [
      '2 1 1 of an authority whose certificate is only sent along',
      withIssuer(VALID, UNKNOWN_AUTHORITY),
      ANCHOR,
    ],
    [
      '2 1 1 and a certificate for another name',
      withIssuer(UNKNOWN_AUTHORITY.issue(['x.test']), UNKNOWN_AUTHORITY),
      ANCHOR,
    ],
    [
      '2 1 1 and an expired certificate',
      withIssuer(UNKNOWN_AUTHORITY.issue([NAME], new Date(Date.now() - 86_400_000)), UNKNOWN_AUTHORITY),
      ANCHOR,
    ],
    ['2 0 0 that is no certificate', VALID, [{ usage: 2, selector: 0, matchingType: 0, data: 'abcdef' }]],
  ];
  it.each(MISMATCHES)('defers with %s', async (_, certificate, records) => {
    const to = await sink({ tls: certificate });
    const by = trusting();
    for (let round = 0; round < 2; round++) {
      const report = await deliver(by, jobWith(to, dane(records)));
      expect(report).toMatchObject({
        conclusion: 'refused-locally',
        phase: 'starttls',
        reply: { code: 454, enhanced: '4.7.5' },
      });
      expect(lastError(report)).toMatch(
        /^TLS handshake failed: the certificate does not match the TLSA records of _25\._tcp\.mx1\.example\.test.*\(required by the TLSA records of _25/,
      );
    }
    expect(to.messages).toEqual([]);
    await expect.poll(() => to.open).toBe(0);
  });

  it('accepts a certificate of a trust anchor for any of the names', async () => {
    const to = await sink({ tls: withIssuer(UNKNOWN_AUTHORITY.issue(['example.test']), UNKNOWN_AUTHORITY) });
    const report = await deliver(trusting(), jobWith(to, dane(ANCHOR, { names: [NAME, 'example.test'] })));
    expect(summary(report)).toBe('replied dot 250');
  });

  it('requires a new verification after the records have changed', async () => {
    const to = await sink({ tls: withIssuer(UNKNOWN_AUTHORITY.issue([NAME]), UNKNOWN_AUTHORITY) });
    const by = trusting();
    expect(summary(await deliver(by, jobWith(to, dane(ANCHOR))))).toBe('replied dot 250');
    const report = await deliver(by, jobWith(to, dane([tlsa(3, SELF_SIGNED)])));
    expect(summary(report)).toBe('refused-locally starttls 454');
    expect(report.sessions).toMatchObject([{ tlsResult: { failure: 'tlsa-invalid' } }]);
  });

  it('never delivers in plain text', async () => {
    const to = await sink({ tls: null });
    const report = await deliver(trusting(), jobWith(to, dane([tlsa(3, VALID)])));
    expect(summary(report)).toBe('refused-locally starttls 454');
    expect(report.sessions).toMatchObject([{ tlsResult: { failure: 'starttls-not-supported' } }]);
  });

  it.each([
    ['encrypts without verification', SELF_SIGNED, 'replied dot 250'],
    ['never delivers in plain text', null, 'refused-locally starttls 454'],
  ])('%s when no record is usable', async (_, tls, expected) => {
    const to = await sink({ tls });
    const report = await deliver(trusting(), jobWith(to, dane([])));
    expect(summary(report)).toBe(expected);
    if (tls !== null)
      expect(report.sessions[0]?.tls).toMatchObject({
        verification: 'none',
        policy: 'required',
        requiredBy: 'dane',
      });
  });

  it('continues with the next host when the records of one cannot be looked up', async () => {
    const [one, two] = await sinks({ tls: VALID }, { tls: VALID });
    const fault = { type: 'dnssec-invalid', text: 'TLSA records could not be looked up' } as const;
    const hosts = [
      { ...host(NAME, one!.host), policy: dane([], { fault }) },
      host('mx2.example.test', two!.host),
    ];
    const report = await deliver(trusting(), job(one!, { hosts }));
    expect(summary(report)).toBe('replied dot 250');
    expect(report.sessions).toMatchObject([
      { host: NAME, phase: 'dns', error: fault.text, tlsResult: { failure: 'dnssec-invalid' } },
      { host: 'mx2.example.test', phase: 'dot' },
    ]);
    expect([one?.sessions.length, two?.count]).toEqual([0, 1]);
  });

  it('closes the connection to a host that deferred when the policy excludes the next host', async () => {
    const [one, two] = await sinks({ tls: VALID, script: { rcpt: '450 4.2.1 later' } }, { tls: VALID });
    const fault = { type: 'dnssec-invalid', text: 'TLSA records could not be looked up' } as const;
    const hosts = [
      host(NAME, one!.host),
      { ...host('mx2.example.test', two!.host), policy: dane([], { fault }) },
    ];
    const by = trusting();
    const report = await deliver(by, job(one!, { hosts }));
    expect(summary(report)).toBe('replied rcpt 450');
    await expect.poll(() => by.open.size).toBe(0);
    expect(two?.sessions).toEqual([]);
  });
});

describe('MTA-STS', () => {
  const mismatch = { type: 'validation-failure', text: 'mx1 is not in the policy' } as const;

  it('delivers to a valid certificate, verified by authorities', async () => {
    const to = await sink({ tls: VALID });
    const report = await deliver(trusting(), jobWith(to, sts('enforce')));
    expect(report.sessions).toMatchObject([
      {
        tls: { verification: 'webpki', policy: 'verified', requiredBy: 'mta-sts' },
        tlsResult: { failure: null },
      },
    ]);
  });

  const INVALID = [
    ['an expired certificate', EXPIRED, 'certificate-expired'],
    ['a certificate for another name', OTHER_NAME, 'certificate-host-mismatch'],
    ['a self-signed certificate', SELF_SIGNED, 'certificate-not-trusted'],
    ['garbage', 'garbage', 'validation-failure'],
    ['no STARTTLS', null, 'starttls-not-supported'],
  ] as const;
  it.each(INVALID)('enforce: defers with %s', async (_, tls, failure) => {
    const to = await sink({ tls });
    const report = await deliver(trusting(), jobWith(to, sts('enforce')));
    expect(summary(report)).toBe('refused-locally starttls 454');
    expect(lastError(report)).toMatch(/\(required by the MTA-STS policy of example\.test\)$/);
    expect(report.sessions).toMatchObject([{ tlsResult: { failure } }]);
    expect(to.count).toBe(0);
  });

  it.each(INVALID)('testing: delivers with %s, and reports it', async (_, tls, failure) => {
    const to = await sink({ tls });
    const report = await deliver(trusting(), jobWith(to, sts('testing')));
    expect(summary(report)).toBe('replied dot 250');
    expect(report.sessions[0]).toMatchObject({ tlsResult: { failure } });
    if (typeof tls !== 'string' && tls !== null)
      expect(report.sessions[0]?.tls).toMatchObject({ requiredBy: 'default', policy: 'opportunistic' });
  });

  it('testing: reports the fault of the certificate in resumed sessions, too', async () => {
    const to = await sink({ tls: OTHER_NAME });
    const by = trusting();
    const failures = [];
    for (let round = 0; round < 3; round++) {
      const { sessions } = await deliver(by, jobWith(to, sts('testing'), { idleMs: 0 }));
      failures.push(sessions[0]?.tlsResult?.failure);
    }
    expect(to.sessions.map(({ tls }) => tls?.resumed)).toEqual([false, true, true]);
    expect(failures).toEqual(Array.from({ length: 3 }, () => 'certificate-host-mismatch'));
  });

  it('enforce: never connects to a host that is not in the policy', async () => {
    const to = await sink({ tls: VALID });
    const report = await deliver(trusting(), jobWith(to, sts('enforce', mismatch)));
    expect(summary(report)).toBe('refused-locally dns 454');
    expect(to.sessions).toEqual([]);
  });

  it('testing: delivers to a host that is not in the policy, and reports it', async () => {
    const to = await sink({ tls: VALID });
    const report = await deliver(trusting(), jobWith(to, sts('testing', mismatch)));
    expect(summary(report)).toBe('replied dot 250');
    expect(report.sessions).toMatchObject([{ tlsResult: { failure: 'validation-failure' } }]);
  });

  it('is turned off by the configured mode none', async () => {
    const to = await sink({ tls: null });
    const report = await deliver(trusting(), jobWith(to, sts('enforce', mismatch), { tls: 'none' }));
    expect(summary(report)).toBe('replied dot 250');
  });
});

describe('a connection that another domain of the site opened', () => {
  /** Delivers with each policy over the same slot; returns the number of connections. */
  async function connectionsFor(tls: Certificate | null, ...policies: (HostPolicy | undefined)[]) {
    const to = await sink({ tls });
    const by = trusting();
    const conclusions = [];
    for (const policy of policies) {
      const hosts = [{ ...host(NAME, to.host), ...(policy === undefined ? {} : { policy }) }];
      conclusions.push((await deliver(by, job(to, { hosts }))).conclusion);
    }
    return [to.sessions.length, ...conclusions];
  }
  const unverified = dane([]);

  it('is used for an MTA-STS policy only if its certificate was verified', async () => {
    expect(await connectionsFor(VALID, undefined, sts('enforce'))).toEqual([1, 'replied', 'replied']);
    expect(await connectionsFor(SELF_SIGNED, undefined, sts('enforce'))).toEqual([
      2,
      'replied',
      'refused-locally',
    ]);
    expect(await connectionsFor(null, undefined, sts('enforce'))).toEqual([2, 'replied', 'refused-locally']);
  });

  it('is used for TLSA records only if it was verified by the same ones', async () => {
    const first = dane([tlsa(3, VALID)]);
    const second = dane([tlsa(3, VALID), tlsa(3, EXPIRED)]);
    expect(await connectionsFor(VALID, first, first)).toEqual([1, 'replied', 'replied']);
    expect(await connectionsFor(VALID, first, second)).toEqual([2, 'replied', 'replied']);
    expect(await connectionsFor(VALID, undefined, first)).toEqual([2, 'replied', 'replied']);
  });

  it('is used for unusable TLSA records if it is encrypted', async () => {
    expect(await connectionsFor(SELF_SIGNED, undefined, unverified)).toEqual([1, 'replied', 'replied']);
    expect(await connectionsFor(null, undefined, unverified)).toEqual([2, 'replied', 'refused-locally']);
  });

  it('is used for a domain without a policy', async () => {
    expect(await connectionsFor(VALID, sts('enforce'), undefined, sts('testing'))).toEqual([
      1,
      'replied',
      'replied',
      'replied',
    ]);
  });

  it('shows the requirement of each message, and counts the session once', async () => {
    const to = await sink({ tls: VALID });
    const by = trusting();
    await deliver(by, job(to));
    const report = await deliver(by, jobWith(to, sts('enforce')));
    expect(report.sessions).toMatchObject([{ tls: { policy: 'verified', requiredBy: 'mta-sts' } }]);
    expect(report.sessions[0]).not.toHaveProperty('tlsResult');
  });
});

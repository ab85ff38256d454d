import { expect } from 'vitest';
import { createAuthority, selfSigned } from '../support/certificates.ts';
import { tlsaRecord } from '../support/tlsa.ts';
import { deferred, delivered } from './support/attempts.ts';
import { deferredForTls, requiring } from './support/deferred-for-tls.ts';
import { AUTHORITY } from './support/environment.ts';
import { BY_DANE, BY_POLICY, OPPORTUNISTIC, policyOf } from './support/published-policies.ts';
import { registerScenarios } from './support/register.ts';
import type { ScenarioRun } from './support/run.ts';
import {
  BOGUS_TLSA,
  BOGUS_ZONE,
  bogusZone,
  NO_MATCH,
  UNUSABLE,
  withTlsa,
} from './support/signed-destination.ts';

const UNKNOWN = createAuthority('Untrusted authority');
const { key, cert } = UNKNOWN.issue(['mx.dane-anchor.example']);

const CERTIFICATE_DANE_BEFORE_STS = selfSigned(['mx.dane-before-sts.example']);

const BOGUS_DANE_BOGUS_NEXT_HOST =
  'mx dns: mx.dane-bogus-next-host.example: the TLSA records of _25._tcp.mx.dane-bogus-next-host.example could not be looked up (ESERVFAIL); mail is sent only if DNSSEC proves that there are none';

const BOGUS_DANE_BOGUS = deferred(
  '454 4.7.5',
  'tls-failed',
  undefined,
  'mx dns: mx.dane-bogus.example: the TLSA records of _25._tcp.mx.dane-bogus.example could not be looked up (ESERVFAIL); mail is sent only if DNSSEC proves that there are none',
);

const CERTIFICATE_DANE_EXPIRED = AUTHORITY.issue(['mail.elsewhere.example'], new Date('2020-01-01'));

const PUBLISHED_DANE_FAILS_WITH_STS = selfSigned(['mx.dane-fails-with-sts.example']);

const tlsaName = ({ env, domain }: ScenarioRun) => `_${env.port}._tcp.mx.${domain}`;

const PUBLISHED_DANE_MISMATCH = selfSigned(['mx.dane-mismatch.example']);

const CERTIFICATE_DANE_NOT_OFFERED = selfSigned(['mx.dane-not-offered.example']);

const CERTIFICATE_DANE_TWO_RECORDS = selfSigned(['mx.dane-two-records.example']);

const CERTIFICATE_DANE_VALID = selfSigned(['mx.dane-valid.example']);

const CERTIFICATE_DANE_WITH_REQUIRED = selfSigned(['mx.dane-with-required.example']);

registerScenarios(
  'dane',
  {
    'dane-anchor': {
      title: 'verifies the certificate of an untrusted authority with a TLSA record 2 1 1',
      signed: withTlsa(tlsaRecord(2, UNKNOWN)),
      hosts: { mx: { tls: { key, cert: cert + UNKNOWN.cert } } },
      messages: { ada: BY_DANE },
    },
    'dane-before-sts': {
      // RFC 8461 §2
      title:
        'verifies with TLSA records although an enforced MTA-STS policy permits neither the certificate nor the host',
      mtaSts: policyOf('dane-before-sts', 'enforce', ['mail.elsewhere.example']),
      signed: withTlsa(tlsaRecord(3, CERTIFICATE_DANE_BEFORE_STS)),
      hosts: { mx: { tls: CERTIFICATE_DANE_BEFORE_STS } },
      messages: { ada: BY_DANE },
    },
    'dane-bogus-next-host': {
      title: 'uses the next host when the TLSA records of one are bogus',
      signed: withTlsa(BOGUS_TLSA),
      hosts: { mx: { tls: selfSigned(['mx.example']) }, mx2: { tls: selfSigned(['mx2.example']) } },
      messages: {
        ada: { attempts: [delivered(BOGUS_DANE_BOGUS_NEXT_HOST, 'mx2 dot 250 TLS')], status: 'delivered' },
      },
      connections: { mx: [] },
    },
    'dane-bogus': {
      title: 'never connects to a host whose TLSA records are bogus, and fails its mail as expired',
      settings: () => ({ 'delivery.retry.first': '20h', 'delivery.retry.max': '20h' }),
      signed: withTlsa(BOGUS_TLSA),
      hosts: { mx: { tls: selfSigned(['mx.example']) } },
      messages: {
        ada: {
          attempts: [BOGUS_DANE_BOGUS, BOGUS_DANE_BOGUS, BOGUS_DANE_BOGUS],
          status: 'failed',
          lastEvent: { reason: 'expired' },
        },
      },
      connections: { mx: [] },
    },
    'dane-expired': {
      // RFC 7671 §5.1
      title: 'ignores the names and dates of a certificate that a TLSA record 3 1 1 matches',
      signed: withTlsa(tlsaRecord(3, CERTIFICATE_DANE_EXPIRED)),
      hosts: { mx: { tls: CERTIFICATE_DANE_EXPIRED } },
      messages: { ada: BY_DANE },
    },
    'dane-fails-with-sts': deferredForTls({
      title: 'defers mail when no TLSA record matches, although the certificate satisfies the MTA-STS policy',
      mtaSts: policyOf('dane-fails-with-sts'),
      signed: withTlsa(tlsaRecord(3, PUBLISHED_DANE_FAILS_WITH_STS)),
      tls: AUTHORITY.issue(['mx.dane-fails-with-sts.example']),
      session:
        'mx starttls: TLS handshake failed: the certificate does not match the TLSA records of _25._tcp.mx.dane-fails-with-sts.example (required by the TLSA records of _25._tcp.mx.dane-fails-with-sts.example)',
      certificate: PUBLISHED_DANE_FAILS_WITH_STS,
    }),
    'dane-insecure-zone': {
      // RFC 7672 §2.2.2
      title: 'does not query TLSA records in a zone that is not signed',
      hosts: { mx: { tls: selfSigned(['mx.example']) } },
      messages: { ada: OPPORTUNISTIC },
      play: async (run) => {
        run.publish({ [`${tlsaName(run)}.`]: { '*': 'SERVFAIL' } });
        await run.sendAll();
      },
      verify: (run) => expect(run.env.daemon.dns.asked(tlsaName(run), 'TLSA')).toBe(0),
    },
    'dane-mismatch': deferredForTls({
      title:
        'defers mail while no TLSA record matches the certificate, although a trusted authority has issued it',
      signed: withTlsa(tlsaRecord(3, PUBLISHED_DANE_MISMATCH)),
      tls: AUTHORITY.issue(['mx.dane-mismatch.example']),
      session:
        'mx starttls: TLS handshake failed: the certificate does not match the TLSA records of _25._tcp.mx.dane-mismatch.example (required by the TLSA records of _25._tcp.mx.dane-mismatch.example)',
      certificate: PUBLISHED_DANE_MISMATCH,
      encryption: BY_DANE.tls ?? {},
    }),
    'dane-missing-with-sts': {
      title: 'applies the MTA-STS policy of a signed domain without TLSA records',
      mtaSts: policyOf('dane-missing-with-sts'),
      signed: () => [],
      hosts: { mx: { tls: AUTHORITY.issue(['mx.dane-missing-with-sts.example']) } },
      messages: { ada: BY_POLICY },
    },
    'dane-missing': {
      title: 'sends in plain text when DNSSEC proves that a host has no TLSA records',
      signed: () => [],
      hosts: { mx: {} },
      messages: { ada: { attempts: [delivered('mx dot 250')], status: 'delivered' } },
    },
    'dane-not-offered': deferredForTls({
      title:
        'defers mail while a host with TLSA records does not offer STARTTLS, and sends nothing in plain text',
      signed: withTlsa(tlsaRecord(3, CERTIFICATE_DANE_NOT_OFFERED)),
      tls: null,
      session:
        'mx starttls: mx.dane-not-offered.example does not offer STARTTLS (required by the TLSA records of _25._tcp.mx.dane-not-offered.example)',
      connection: 'EHLO QUIT',
      certificate: CERTIFICATE_DANE_NOT_OFFERED,
    }),
    'dane-two-records': {
      title: 'accepts a certificate that one of several TLSA records matches, as during a key change',
      signed: withTlsa(NO_MATCH, tlsaRecord(3, CERTIFICATE_DANE_TWO_RECORDS)),
      hosts: { mx: { tls: CERTIFICATE_DANE_TWO_RECORDS } },
      messages: { ada: BY_DANE },
    },
    'dane-unusable': {
      // RFC 7672 §2.2
      title: 'requires encryption without verification when no TLSA record is usable',
      signed: withTlsa(UNUSABLE),
      hosts: { mx: { tls: selfSigned(['mx.example']) } },
      messages: {
        ada: {
          attempts: [delivered('mx dot 250 TLS')],
          status: 'delivered',
          tls: { requiredBy: 'dane', verification: 'none', policy: 'required' },
        },
      },
    },
    'dane-valid': {
      title: 'verifies a self-signed certificate with a TLSA record 3 1 1',
      signed: withTlsa(tlsaRecord(3, CERTIFICATE_DANE_VALID)),
      hosts: { mx: { tls: CERTIFICATE_DANE_VALID } },
      messages: { ada: BY_DANE },
      connections: { mx: ['EHLO STARTTLS TLS EHLO MAIL RCPT DATA . QUIT'] },
    },
    'dane-with-required': {
      title: 'verifies with TLSA records when shaping requires only encryption',
      settings: requiring('required'),
      signed: withTlsa(tlsaRecord(3, CERTIFICATE_DANE_WITH_REQUIRED)),
      hosts: { mx: { tls: CERTIFICATE_DANE_WITH_REQUIRED } },
      messages: { ada: BY_DANE },
    },
  },
  {
    programs: ['knot', 'unbound', 'root'],
    policyHost: true,
    signedZones: () => bogusZone(selfSigned(['mx.example'])),
    bogusZones: [BOGUS_ZONE],
  },
);

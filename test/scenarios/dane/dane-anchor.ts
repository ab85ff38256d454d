import { createAuthority } from '../../support/certificates.ts';
import { tlsaRecord } from '../../support/tlsa.ts';
import { BY_DANE } from '../support/published-policies.ts';
import type { Scenario } from '../support/scenario.ts';
import { withTlsa } from '../support/signed-destination.ts';

const UNKNOWN = createAuthority('Untrusted authority');
const { key, cert } = UNKNOWN.issue(['mx.dane-anchor.example']);

export default {
  title: 'verifies the certificate of an untrusted authority with a TLSA record 2 1 1',
  signed: withTlsa(tlsaRecord(2, UNKNOWN)),
  hosts: { mx: { tls: { key, cert: cert + UNKNOWN.cert } } },
  messages: { ada: BY_DANE },
} satisfies Scenario;

import { selfSigned } from '../../support/certificates.ts';
import { tlsaRecord } from '../../support/tlsa.ts';
import { BY_DANE, policyOf } from '../support/published-policies.ts';
import type { Scenario } from '../support/scenario.ts';
import { withTlsa } from '../support/signed-destination.ts';

const CERTIFICATE = selfSigned(['mx.dane-before-sts.example']);

export default {
  // RFC 8461 §2
  title:
    'verifies with TLSA records although an enforced MTA-STS policy permits neither the certificate nor the host',
  mtaSts: policyOf('dane-before-sts', 'enforce', ['mail.elsewhere.example']),
  signed: withTlsa(tlsaRecord(3, CERTIFICATE)),
  hosts: { mx: { tls: CERTIFICATE } },
  messages: { ada: BY_DANE },
} satisfies Scenario;

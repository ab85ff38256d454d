import { selfSigned } from '../../support/certificates.ts';
import { tlsaRecord } from '../../support/tlsa.ts';
import { BY_DANE } from '../support/published-policies.ts';
import type { Scenario } from '../support/scenario.ts';
import { NO_MATCH, withTlsa } from '../support/signed-destination.ts';

const CERTIFICATE = selfSigned(['mx.dane-two-records.example']);

export default {
  title: 'accepts a certificate that one of several TLSA records matches, as during a key change',
  signed: withTlsa(NO_MATCH, tlsaRecord(3, CERTIFICATE)),
  hosts: { mx: { tls: CERTIFICATE } },
  messages: { ada: BY_DANE },
} satisfies Scenario;

import { tlsaRecord } from '../../support/tlsa.ts';
import { AUTHORITY } from '../support/environment.ts';
import { BY_DANE } from '../support/published-policies.ts';
import type { Scenario } from '../support/scenario.ts';
import { withTlsa } from '../support/signed-destination.ts';

const CERTIFICATE = AUTHORITY.issue(['mail.elsewhere.example'], new Date('2020-01-01'));

export default {
  // RFC 7671 §5.1
  title: 'ignores the names and dates of a certificate that a TLSA record 3 1 1 matches',
  signed: withTlsa(tlsaRecord(3, CERTIFICATE)),
  hosts: { mx: { tls: CERTIFICATE } },
  messages: { ada: BY_DANE },
} satisfies Scenario;

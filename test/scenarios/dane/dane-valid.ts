import { selfSigned } from '../../support/certificates.ts';
import { tlsaRecord } from '../../support/tlsa.ts';
import { BY_DANE } from '../support/published-policies.ts';
import type { Scenario } from '../support/scenario.ts';
import { withTlsa } from '../support/signed-destination.ts';

const CERTIFICATE = selfSigned(['mx.dane-valid.example']);

export default {
  title: 'verifies a self-signed certificate with a TLSA record 3 1 1',
  signed: withTlsa(tlsaRecord(3, CERTIFICATE)),
  hosts: { mx: { tls: CERTIFICATE } },
  messages: { ada: BY_DANE },
  connections: { mx: ['EHLO STARTTLS TLS EHLO MAIL RCPT DATA . QUIT'] },
} satisfies Scenario;

import { selfSigned } from '../../support/certificates.ts';
import { tlsaRecord } from '../../support/tlsa.ts';
import { requiring } from '../support/deferred-for-tls.ts';
import { BY_DANE } from '../support/published-policies.ts';
import type { Scenario } from '../support/scenario.ts';
import { withTlsa } from '../support/signed-destination.ts';

const CERTIFICATE = selfSigned(['mx.dane-with-required.example']);

export default {
  title: 'verifies with TLSA records when shaping requires only encryption',
  settings: requiring('required'),
  signed: withTlsa(tlsaRecord(3, CERTIFICATE)),
  hosts: { mx: { tls: CERTIFICATE } },
  messages: { ada: BY_DANE },
} satisfies Scenario;

import { selfSigned } from '../../support/certificates.ts';
import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';
import { UNUSABLE, withTlsa } from '../support/signed-destination.ts';

export default {
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
} satisfies Scenario;

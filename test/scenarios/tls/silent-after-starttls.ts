import { selfSigned } from '../../support/certificates.ts';
import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'connects again in plain text when STARTTLS is not answered for five minutes',
  hosts: { mx: { tls: selfSigned(['mx.example']), script: { starttls: 'silent' } } },
  messages: {
    ada: {
      attempts: [delivered('mx starttls: timed out after 5 min waiting for TLS', 'mx dot 250')],
      status: 'delivered',
    },
  },
} satisfies Scenario;

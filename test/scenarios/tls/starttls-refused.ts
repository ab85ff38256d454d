import { selfSigned } from '../../support/certificates.ts';
import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'continues in plain text on the same connection when the host rejects STARTTLS',
  hosts: {
    mx: {
      tls: selfSigned(['mx.example']),
      script: { starttls: '454 4.7.0 TLS not available due to temporary reason' },
    },
  },
  messages: { ada: { attempts: [delivered('mx dot 250')], status: 'delivered' } },
  connections: { mx: ['EHLO STARTTLS MAIL RCPT DATA . QUIT'] },
} satisfies Scenario;

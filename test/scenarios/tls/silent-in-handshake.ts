import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'connects again in plain text when the handshake is not answered for a minute',
  hosts: { mx: { tls: 'silent' } },
  messages: {
    ada: {
      attempts: [
        delivered('mx starttls: TLS handshake failed: timed out after 60 s waiting for TLS', 'mx dot 250'),
      ],
      status: 'delivered',
    },
  },
  connections: { mx: ['EHLO STARTTLS', 'EHLO MAIL RCPT DATA . QUIT'] },
} satisfies Scenario;

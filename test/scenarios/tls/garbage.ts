import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'connects again in plain text when the handshake is answered with garbage',
  hosts: { mx: { tls: 'garbage' } },
  messages: {
    ada: {
      attempts: [delivered('mx starttls: TLS handshake failed: wrong version number', 'mx dot 250')],
      status: 'delivered',
    },
  },
  connections: { mx: ['EHLO STARTTLS', 'EHLO MAIL RCPT DATA . QUIT'] },
} satisfies Scenario;

import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'connects again in plain text when the host closes the connection in the handshake',
  hosts: { mx: { tls: 'drop' } },
  messages: {
    ada: {
      attempts: [
        delivered(
          'mx starttls: TLS handshake failed: server closed the connection during STARTTLS',
          'mx dot 250',
        ),
      ],
      status: 'delivered',
    },
  },
  connections: { mx: ['EHLO STARTTLS', 'EHLO MAIL RCPT DATA . QUIT'] },
} satisfies Scenario;

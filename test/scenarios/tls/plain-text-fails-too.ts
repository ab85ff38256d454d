import { MINUTE } from '../../../src/core/clock.ts';
import { onConnection } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'defers mail because of the network when plain text fails after a failed handshake',
  hosts: { mx: { tls: 'garbage', script: { greeting: onConnection(2, 'drop') } } },
  messages: {
    ada: {
      attempts: [
        deferred(
          '451 4.4.1',
          'network-error',
          5 * MINUTE,
          'mx starttls: TLS handshake failed: wrong version number',
          'mx greeting: server closed the connection before the greeting',
        ),
        delivered('mx starttls: TLS handshake failed: wrong version number', 'mx dot 250'),
      ],
      status: 'delivered',
    },
  },
} satisfies Scenario;

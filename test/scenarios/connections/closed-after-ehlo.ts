import { MINUTE } from '../../../src/core/clock.ts';
import { onConnection } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'retries a host that closes the connection after EHLO',
  hosts: { mx: { script: { ehlo: onConnection(1, 'drop') } } },
  messages: {
    ada: {
      attempts: [
        deferred(
          '451 4.4.1',
          'network-error',
          5 * MINUTE,
          'mx ehlo: server closed the connection during EHLO',
        ),
        delivered('mx dot 250'),
      ],
      status: 'delivered',
    },
  },
  connections: { mx: ['EHLO', 'EHLO MAIL RCPT DATA . QUIT'] },
} satisfies Scenario;

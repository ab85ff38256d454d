import { MINUTE } from '../../../src/core/clock.ts';
import { onConnection } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'retries a host that closes the connection after RCPT',
  hosts: { mx: { script: { rcpt: onConnection(1, 'drop') } } },
  messages: {
    ada: {
      attempts: [
        deferred(
          '451 4.4.1',
          'network-error',
          5 * MINUTE,
          'mx rcpt: server closed the connection during RCPT',
        ),
        delivered('mx dot 250'),
      ],
      status: 'delivered',
    },
  },
  connections: { mx: ['EHLO MAIL RCPT', 'EHLO MAIL RCPT DATA . QUIT'] },
} satisfies Scenario;

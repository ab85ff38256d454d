import { MINUTE } from '../../../src/core/clock.ts';
import { onConnection } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'closes a connection without a reply to MAIL after five minutes',
  hosts: { mx: { script: { mail: onConnection(1, 'silent') } } },
  messages: {
    ada: {
      attempts: [
        deferred(
          '451 4.4.1',
          'network-error',
          5 * MINUTE,
          'mx mail: timed out after 5 min waiting for the reply to MAIL',
        ),
        delivered('mx dot 250'),
      ],
      status: 'delivered',
    },
  },
  connections: { mx: ['EHLO MAIL', 'EHLO MAIL RCPT DATA . QUIT'] },
} satisfies Scenario;

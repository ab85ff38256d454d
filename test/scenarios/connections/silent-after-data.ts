import { MINUTE } from '../../../src/core/clock.ts';
import { onConnection } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'closes a connection without a reply to DATA after two minutes',
  hosts: { mx: { script: { data: onConnection(1, 'silent') } } },
  messages: {
    ada: {
      attempts: [
        deferred(
          '451 4.4.1',
          'network-error',
          5 * MINUTE,
          'mx data: timed out after 2 min waiting for the reply to DATA',
        ),
        delivered('mx dot 250'),
      ],
      status: 'delivered',
    },
  },
  connections: { mx: ['EHLO MAIL RCPT DATA', 'EHLO MAIL RCPT DATA . QUIT'] },
} satisfies Scenario;

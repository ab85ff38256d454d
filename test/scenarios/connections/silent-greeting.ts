import { MINUTE } from '../../../src/core/clock.ts';
import { onConnection } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'closes a connection without a greeting after a minute',
  hosts: { mx: { script: { greeting: onConnection(1, 'silent') } } },
  messages: {
    ada: {
      attempts: [
        deferred(
          '451 4.4.1',
          'network-error',
          5 * MINUTE,
          'mx greeting: timed out after 60 s waiting for the greeting',
        ),
        delivered('mx dot 250'),
      ],
      status: 'delivered',
    },
  },
  connections: { mx: ['', 'EHLO MAIL RCPT DATA . QUIT'] },
} satisfies Scenario;

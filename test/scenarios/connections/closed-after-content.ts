import { MINUTE } from '../../../src/core/clock.ts';
import { onConnection } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  // The host may have accepted the message (RFC 1047): another host does not get it in the same attempt.
  title: 'retries a message whose connection is closed after the final dot, without trying the next host',
  hosts: { mx: { script: { dot: onConnection(1, 'drop') } }, mx2: {} },
  messages: {
    ada: {
      attempts: [
        deferred(
          '451 4.4.2',
          'network-error',
          5 * MINUTE,
          'mx dot: server closed the connection after the message, without a reply',
        ),
        delivered('mx dot 250'),
      ],
      status: 'delivered',
    },
  },
  connections: { mx: ['EHLO MAIL RCPT DATA .', 'EHLO MAIL RCPT DATA . QUIT'], mx2: [] },
} satisfies Scenario;

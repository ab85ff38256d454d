import { MINUTE } from '../../../src/core/clock.ts';
import { onConnection } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'retries a host that resets the connection before the greeting',
  hosts: { mx: { script: { greeting: onConnection(1, 'reset') } } },
  messages: {
    ada: {
      attempts: [
        // The phase of the session is not compared: the reset may arrive before the worker sees the connection.
        deferred('451 4.4.1', 'network-error', 5 * MINUTE),
        delivered('mx dot 250'),
      ],
      status: 'delivered',
    },
  },
  connections: { mx: ['', 'EHLO MAIL RCPT DATA . QUIT'] },
} satisfies Scenario;

import { MINUTE } from '../../../src/core/clock.ts';
import { onConnection } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'closes the connection to an HTTP server, and retries',
  hosts: {
    mx: {
      script: {
        greeting: onConnection(1, [
          'HTTP/1.1 400 Bad Request',
          'Connection: close',
          '',
          '<h1>Bad Request</h1>',
        ]),
      },
    },
  },
  messages: {
    ada: {
      attempts: [
        deferred(
          '451 4.4.1',
          'network-error',
          5 * MINUTE,
          'mx greeting: not an SMTP reply: HTTP/1.1 400 Bad Request',
        ),
        delivered('mx dot 250'),
      ],
      status: 'delivered',
    },
  },
  connections: { mx: ['', 'EHLO MAIL RCPT DATA . QUIT'] },
} satisfies Scenario;

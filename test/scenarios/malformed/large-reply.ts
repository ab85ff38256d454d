import { MINUTE } from '../../../src/core/clock.ts';
import { onConnection } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'closes the connection when a reply has more than 64 KB, and retries',
  hosts: {
    mx: {
      script: {
        ehlo: onConnection(
          1,
          Array.from({ length: 100 }, () => `250-${'x'.repeat(1000)}`),
        ),
      },
    },
  },
  messages: {
    ada: {
      attempts: [
        deferred('451 4.4.1', 'network-error', 5 * MINUTE, 'mx ehlo: a reply of more than 65536 bytes'),
        delivered('mx dot 250'),
      ],
      status: 'delivered',
    },
  },
  connections: { mx: ['EHLO', 'EHLO MAIL RCPT DATA . QUIT'] },
} satisfies Scenario;

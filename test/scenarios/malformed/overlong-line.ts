import { MINUTE } from '../../../src/core/clock.ts';
import { onConnection } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'closes the connection when a line has more than 8 KB, and retries',
  hosts: { mx: { script: { ehlo: onConnection(1, `250 ${'x'.repeat(9000)}`) } } },
  messages: {
    ada: {
      attempts: [
        deferred('451 4.4.1', 'network-error', 5 * MINUTE, 'mx ehlo: a reply line of more than 8192 bytes'),
        delivered('mx dot 250'),
      ],
      status: 'delivered',
    },
  },
  connections: { mx: ['EHLO', 'EHLO MAIL RCPT DATA . QUIT'] },
} satisfies Scenario;

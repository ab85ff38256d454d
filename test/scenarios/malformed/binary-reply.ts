import { MINUTE } from '../../../src/core/clock.ts';
import { onConnection } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'closes the connection when a reply is binary, and retries',
  hosts: {
    mx: { script: { mail: onConnection(1, { bytes: '\u0015\u0003\u0001\u0000\u0002\u0002(\r\n' }) } },
  },
  messages: {
    ada: {
      attempts: [
        deferred('451 4.4.1', 'network-error', 5 * MINUTE, 'mx mail: not an SMTP reply:  ('),
        delivered('mx dot 250'),
      ],
      status: 'delivered',
    },
  },
  connections: { mx: ['EHLO MAIL RCPT DATA', 'EHLO MAIL RCPT DATA . QUIT'] },
} satisfies Scenario;

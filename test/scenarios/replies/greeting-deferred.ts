import { MINUTE } from '../../../src/core/clock.ts';
import { inTurn } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'retries a host that greets with 450',
  hosts: { mx: { script: { greeting: inTurn('450 4.3.2 Too busy, please try later') } } },
  messages: {
    ada: {
      attempts: [
        deferred('450 4.3.2', 'server-error', 5 * MINUTE, 'mx greeting 450'),
        delivered('mx dot 250'),
      ],
      status: 'delivered',
    },
  },
  connections: { mx: ['QUIT', 'EHLO MAIL RCPT DATA . QUIT'] },
} satisfies Scenario;

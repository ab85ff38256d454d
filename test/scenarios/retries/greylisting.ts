import { MINUTE } from '../../../src/core/clock.ts';
import { inTurn } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'retries a greylisted recipient after two minutes',
  hosts: {
    mx: { script: { rcpt: inTurn('450 4.2.0 <ada@example>: Recipient address rejected: Greylisted') } },
  },
  messages: {
    ada: {
      attempts: [deferred('450 4.2.0', 'greylisted', 2 * MINUTE, 'mx rcpt 450'), delivered('mx dot 250')],
      status: 'delivered',
    },
  },
  connections: { mx: ['EHLO MAIL RCPT DATA QUIT', 'EHLO MAIL RCPT DATA . QUIT'] },
} satisfies Scenario;

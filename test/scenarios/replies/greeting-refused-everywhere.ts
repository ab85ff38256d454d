import { MINUTE } from '../../../src/core/clock.ts';
import { inTurn } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'defers mail when the only host greets with 554 and states no reason',
  hosts: { mx: { script: { greeting: inTurn('554 No SMTP service here') } } },
  messages: {
    ada: {
      attempts: [deferred('554', 'unclassified', 5 * MINUTE, 'mx greeting 554'), delivered('mx dot 250')],
      status: 'delivered',
    },
  },
  connections: { mx: ['QUIT', 'EHLO MAIL RCPT DATA . QUIT'] },
} satisfies Scenario;

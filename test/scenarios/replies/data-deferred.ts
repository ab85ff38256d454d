import { MINUTE } from '../../../src/core/clock.ts';
import { inTurn } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'retries a message that the host defers at DATA',
  hosts: { mx: { script: { data: inTurn('451 4.3.1 Insufficient system storage') } } },
  messages: {
    ada: {
      attempts: [deferred('451 4.3.1', 'server-error', 5 * MINUTE, 'mx data 451'), delivered('mx dot 250')],
      status: 'delivered',
    },
  },
  connections: { mx: ['EHLO MAIL RCPT DATA QUIT', 'EHLO MAIL RCPT DATA . QUIT'] },
} satisfies Scenario;

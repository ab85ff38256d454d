import { MINUTE } from '../../../src/core/clock.ts';
import { inTurn } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'retries a message that the host defers after its content',
  hosts: { mx: { script: { dot: inTurn('451 4.3.0 Error: queue file write error') } } },
  messages: {
    ada: {
      attempts: [deferred('451 4.3.0', 'server-error', 5 * MINUTE, 'mx dot 451'), delivered('mx dot 250')],
      status: 'delivered',
    },
  },
  connections: { mx: ['EHLO MAIL RCPT DATA . QUIT', 'EHLO MAIL RCPT DATA . QUIT'] },
} satisfies Scenario;

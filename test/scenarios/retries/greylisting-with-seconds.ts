import { MINUTE } from '../../../src/core/clock.ts';
import { inTurn } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'waits as long as a greylisting reply states in seconds',
  hosts: {
    mx: { script: { rcpt: inTurn('451 4.7.1 Greylisting in action, please come back in 600 seconds') } },
  },
  messages: {
    ada: {
      attempts: [
        deferred('451 4.7.1', 'greylisted', { named: 10 * MINUTE }, 'mx rcpt 451'),
        delivered('mx dot 250'),
      ],
      status: 'delivered',
    },
  },
} satisfies Scenario;

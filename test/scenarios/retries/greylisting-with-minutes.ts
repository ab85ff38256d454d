import { MINUTE } from '../../../src/core/clock.ts';
import { inTurn } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'waits as long as a greylisting reply states in minutes, even if that is less than the default wait',
  hosts: { mx: { script: { rcpt: inTurn('451 4.7.1 Greylisted, please try again in 1 minute') } } },
  messages: {
    ada: {
      attempts: [
        deferred('451 4.7.1', 'greylisted', { named: MINUTE }, 'mx rcpt 451'),
        delivered('mx dot 250'),
      ],
      status: 'delivered',
    },
  },
} satisfies Scenario;

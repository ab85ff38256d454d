import { HOUR } from '../../../src/core/clock.ts';
import { inTurn } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'waits for at most a day when a reply states a longer time',
  hosts: { mx: { script: { rcpt: inTurn('450 4.7.1 Please retry in 9999 hours') } } },
  messages: {
    ada: {
      attempts: [
        deferred('450 4.7.1', 'policy-block', { named: 24 * HOUR }, 'mx rcpt 450'),
        delivered('mx dot 250'),
      ],
      status: 'delivered',
    },
  },
} satisfies Scenario;

import { SECOND } from '../../../src/core/clock.ts';
import { inTurn } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'waits as long as a greylisting reply states as a clock time',
  hosts: { mx: { script: { rcpt: inTurn('450 4.7.1 Greylisted, try again in 00:04:59') } } },
  messages: {
    ada: {
      attempts: [
        deferred('450 4.7.1', 'greylisted', { named: 299 * SECOND }, 'mx rcpt 450'),
        delivered('mx dot 250'),
      ],
      status: 'delivered',
    },
  },
} satisfies Scenario;

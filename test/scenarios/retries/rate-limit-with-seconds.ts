import { MINUTE } from '../../../src/core/clock.ts';
import { inTurn } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'waits as long as the reply for a rate limit states',
  hosts: { mx: { script: { rcpt: inTurn('452 4.3.2 Rate limit exceeded, try again in 1800 seconds') } } },
  messages: {
    ada: {
      attempts: [
        deferred('452 4.3.2', 'rate-limited', { named: 30 * MINUTE }, 'mx rcpt 452'),
        delivered('mx dot 250'),
      ],
      status: 'delivered',
    },
  },
} satisfies Scenario;

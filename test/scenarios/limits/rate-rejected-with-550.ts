import { MINUTE } from '../../../src/core/clock.ts';
import { inTurn } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'retries a message that is rejected with 550 because of the rate',
  hosts: {
    mx: { script: { mail: inTurn('550 Connection frequency limited. http://service.mail.qq.com/') } },
  },
  messages: {
    ada: {
      attempts: [deferred('550', 'rate-limited', 5 * MINUTE, 'mx mail 550'), delivered('mx dot 250')],
      status: 'delivered',
    },
  },
} satisfies Scenario;

import { MINUTE } from '../../../src/core/clock.ts';
import { inTurn } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'waits for the number of minutes that a rate limit states in another language',
  hosts: {
    mx: { script: { rcpt: inTurn('451 4.7.1 Zu viele Nachrichten, bitte in 20 Minuten erneut versuchen') } },
  },
  messages: {
    ada: {
      attempts: [
        deferred('451 4.7.1', 'rate-limited', { named: 20 * MINUTE }, 'mx rcpt 451'),
        delivered('mx dot 250'),
      ],
      status: 'delivered',
    },
  },
} satisfies Scenario;

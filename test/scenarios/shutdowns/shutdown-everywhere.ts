import { MINUTE } from '../../../src/core/clock.ts';
import { inTurn } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'defers mail when the only host ends the session with 421, and classifies the text of the reply',
  hosts: {
    mx: {
      script: { greeting: inTurn({ reply: '421 4.7.0 Too many connections, try again later', close: true }) },
    },
  },
  messages: {
    ada: {
      attempts: [
        deferred('421 4.7.0', 'rate-limited', 5 * MINUTE, 'mx greeting 421: the server ended the session'),
        delivered('mx dot 250'),
      ],
      status: 'delivered',
    },
  },
} satisfies Scenario;

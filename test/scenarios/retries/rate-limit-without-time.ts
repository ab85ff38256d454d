import { MINUTE } from '../../../src/core/clock.ts';
import { inTurn } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'waits five minutes after a reply for a rate limit that states no time',
  hosts: {
    mx: {
      script: {
        rcpt: inTurn(
          '450 4.7.28 Our system has detected an unusual rate of unsolicited mail originating from your IP address',
        ),
      },
    },
  },
  messages: {
    ada: {
      attempts: [deferred('450 4.7.28', 'rate-limited', 5 * MINUTE, 'mx rcpt 450'), delivered('mx dot 250')],
      status: 'delivered',
    },
  },
} satisfies Scenario;

import { MINUTE } from '../../../src/core/clock.ts';
import { inTurn } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  // RFC 2034 §4: the class of the enhanced code must be that of the reply.
  title: 'ignores an enhanced code whose class is not that of the reply',
  hosts: { mx: { script: { rcpt: inTurn('450 5.1.1 Mailbox temporarily unavailable') } } },
  messages: {
    ada: {
      attempts: [deferred('450', 'server-error', 5 * MINUTE, 'mx rcpt 450'), delivered('mx dot 250')],
      status: 'delivered',
    },
  },
} satisfies Scenario;

import { MINUTE } from '../../../src/core/clock.ts';
import { repeated } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'waits longer when a recipient is greylisted again',
  hosts: { mx: { script: { rcpt: repeated(2, '450 4.2.0 Recipient address rejected: Greylisted') } } },
  messages: {
    ada: {
      attempts: [
        deferred('450 4.2.0', 'greylisted', 2 * MINUTE),
        deferred('450 4.2.0', 'greylisted', 10 * MINUTE),
        delivered('mx dot 250'),
      ],
      status: 'delivered',
    },
  },
} satisfies Scenario;

import { MINUTE } from '../../../src/core/clock.ts';
import { inTurn } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  // RFC 5321 §4.2.1 forbids such replies.
  title: 'uses the code of the last line when the lines of a reply have different codes',
  hosts: { mx: { script: { rcpt: inTurn(['250-OK, but', '550-wait', '450 4.2.1 Mailbox busy']) } } },
  messages: {
    ada: {
      attempts: [
        deferred('450 4.2.1', 'inactive-mailbox', 5 * MINUTE, 'mx rcpt 450'),
        delivered('mx dot 250'),
      ],
      status: 'delivered',
    },
  },
} satisfies Scenario;

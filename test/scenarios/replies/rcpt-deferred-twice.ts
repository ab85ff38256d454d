import { MINUTE } from '../../../src/core/clock.ts';
import { inTurn } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'defers a message when two hosts defer the recipient, without trying a third',
  hosts: {
    mx: { script: { rcpt: '451 4.3.0 Try later' } },
    mx2: { script: { rcpt: inTurn('451 4.3.0 Try later') } },
    mx3: {},
  },
  messages: {
    ada: {
      attempts: [
        deferred('451 4.3.0', 'server-error', 5 * MINUTE, 'mx rcpt 451', 'mx2 rcpt 451'),
        delivered('mx rcpt 451', 'mx2 dot 250'),
      ],
      status: 'delivered',
    },
  },
  connections: { mx3: [] },
} satisfies Scenario;

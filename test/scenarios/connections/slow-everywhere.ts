import { MINUTE } from '../../../src/core/clock.ts';
import { inTurn } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'ends an attempt over several silent hosts after fifteen minutes in total',
  hosts: {
    mx: { script: { greeting: 'silent' } },
    mx2: { script: { ehlo: 'silent' } },
    mx3: { script: { mail: inTurn('silent') } },
    mx4: { script: { rcpt: 'silent' } },
    mx5: {},
  },
  messages: {
    ada: {
      attempts: [
        deferred(
          '451 4.4.1',
          'network-error',
          5 * MINUTE,
          'mx greeting: timed out after 60 s waiting for the greeting',
          'mx2 ehlo: timed out after 5 min waiting for the reply to EHLO',
          'mx3 mail: timed out after 5 min waiting for the reply to MAIL',
          'mx4 rcpt: gave up after 15 min in total, while waiting for the reply to RCPT',
        ),
        delivered(
          'mx greeting: timed out after 60 s waiting for the greeting',
          'mx2 ehlo: timed out after 5 min waiting for the reply to EHLO',
          'mx3 dot 250',
        ),
      ],
      status: 'delivered',
    },
  },
  connections: { mx5: [] },
} satisfies Scenario;

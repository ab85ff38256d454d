import { MINUTE } from '../../../src/core/clock.ts';
import { onConnection } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'closes a connection whose reply to RCPT never ends after five minutes',
  hosts: { mx: { script: { rcpt: onConnection(1, { bytes: '2', everyMs: 20 }) } } },
  messages: {
    ada: {
      attempts: [
        deferred(
          '451 4.4.1',
          'network-error',
          5 * MINUTE,
          'mx rcpt: timed out after 5 min waiting for the reply to RCPT',
        ),
        delivered('mx dot 250'),
      ],
      status: 'delivered',
    },
  },
} satisfies Scenario;

import { MINUTE } from '../../../src/core/clock.ts';
import { onConnection } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  // RFC 5321 §4.5.3.2.6: a shorter timeout leads to duplicates.
  title: 'waits ten minutes for the reply to a message',
  hosts: { mx: { script: { dot: onConnection(1, { accepted: 'silent' }) } }, mx2: {} },
  messages: {
    ada: {
      attempts: [
        deferred(
          '451 4.4.2',
          'network-error',
          5 * MINUTE,
          'mx dot: timed out after 10 min waiting for the reply to the message',
        ),
        delivered('mx dot 250'),
      ],
      status: 'delivered',
      accepted: 2,
    },
  },
  connections: { mx2: [] },
} satisfies Scenario;

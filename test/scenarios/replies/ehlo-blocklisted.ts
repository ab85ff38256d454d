import { MINUTE } from '../../../src/core/clock.ts';
import { onConnection } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

const BLOCKED = '554 5.7.1 Client host blocked using bl.spamcop.net';

export default {
  title:
    'defers mail whose EHLO is rejected because of our address, and delivers it when the block is lifted',
  hosts: { mx: { script: { ehlo: onConnection(1, BLOCKED), helo: BLOCKED } } },
  messages: {
    ada: {
      attempts: [
        deferred('554 5.7.1', 'reputation-block', 5 * MINUTE, 'mx ehlo 554'),
        delivered('mx dot 250'),
      ],
      status: 'delivered',
    },
  },
} satisfies Scenario;

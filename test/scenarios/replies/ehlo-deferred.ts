import { MINUTE } from '../../../src/core/clock.ts';
import { inTurn } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'retries a host that defers EHLO, without sending HELO',
  hosts: { mx: { script: { ehlo: inTurn('451 4.3.0 Temporary lookup failure') } } },
  messages: {
    ada: {
      attempts: [deferred('451 4.3.0', 'server-error', 5 * MINUTE, 'mx ehlo 451'), delivered('mx dot 250')],
      status: 'delivered',
    },
  },
  connections: { mx: ['EHLO QUIT', 'EHLO MAIL RCPT DATA . QUIT'] },
} satisfies Scenario;

import { MINUTE } from '../../../src/core/clock.ts';
import { inTurn } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'closes the connection, and retries, when a reply has a code that is not valid for the command',
  hosts: {
    mx: { script: { rcpt: inTurn('354 Start mail input'), data: inTurn(undefined, '250 2.0.0 OK') } },
  },
  messages: {
    ada: {
      attempts: [
        deferred('451 4.4.1', 'network-error', 5 * MINUTE, 'mx rcpt: unexpected reply to RCPT: 354'),
        deferred('451 4.4.1', 'network-error', undefined, 'mx data: unexpected reply to DATA: 250'),
        delivered('mx dot 250'),
      ],
      status: 'delivered',
    },
  },
} satisfies Scenario;

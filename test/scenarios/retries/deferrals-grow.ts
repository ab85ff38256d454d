import { HOUR, MINUTE } from '../../../src/core/clock.ts';
import { repeated } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

const deferral = (wait: number) => deferred('451 4.3.0', 'server-error', wait, 'mx rcpt 451');

export default {
  title: 'doubles the wait after each deferral, from five minutes to four hours',
  hosts: { mx: { script: { rcpt: repeated(8, '451 4.3.0 Temporary lookup failure') } } },
  messages: {
    ada: {
      attempts: [
        deferral(5 * MINUTE),
        deferral(10 * MINUTE),
        deferral(20 * MINUTE),
        deferral(40 * MINUTE),
        deferral(80 * MINUTE),
        deferral(160 * MINUTE),
        deferral(4 * HOUR),
        deferral(4 * HOUR),
        delivered('mx dot 250'),
      ],
      status: 'delivered',
    },
  },
} satisfies Scenario;

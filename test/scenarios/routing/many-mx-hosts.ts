import { MINUTE } from '../../../src/core/clock.ts';
import { inTurn } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'tries the five most preferred of sixty MX hosts',
  hosts: Object.fromEntries(
    Array.from({ length: 6 }, (_, n) => [
      `mx${n}`,
      { script: { greeting: n < 5 ? inTurn('450 4.3.2 busy') : '220 sink' } },
    ]),
  ),
  zone: () => ({
    '@': {
      MX: [
        ...Array.from({ length: 54 }, (_, n) => `${100 + n} far${n}`),
        ...Array.from({ length: 6 }, (_, n) => `${n} mx${n}`),
      ],
    },
  }),
  messages: {
    ada: {
      attempts: [
        deferred(
          '450 4.3.2',
          'server-error',
          5 * MINUTE,
          ...Array.from({ length: 5 }, (_, n) => `mx${n} greeting 450`),
        ),
        delivered('mx0 dot 250'),
      ],
      status: 'delivered',
    },
  },
  connections: { mx5: [] },
} satisfies Scenario;

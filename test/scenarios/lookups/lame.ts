import { MINUTE } from '../../../src/core/clock.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'defers mail while the name server answers with a referral',
  hosts: { mx: {} },
  zone: () => ({ '@': { MX: 'referral', A: 'referral', AAAA: 'referral' } }),
  messages: {
    ada: {
      attempts: [deferred('451 4.4.3', 'network-error', 5 * MINUTE), delivered('mx dot 250')],
      status: 'delivered',
    },
  },
  play: async (run) => {
    await run.sendAll();
    await run.settle();
    run.publish({ '@': { MX: ['10 mx'] } });
  },
} satisfies Scenario;

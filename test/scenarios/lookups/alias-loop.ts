import { MINUTE } from '../../../src/core/clock.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'defers mail to a domain while its aliases form a loop',
  hosts: { mx: {} },
  zone: () => ({ shop: { CNAME: ['store'] }, store: { CNAME: ['shop'] } }),
  messages: {
    ada: {
      subdomain: 'shop',
      attempts: [deferred('451 4.4.3', 'network-error', 5 * MINUTE), delivered('mx dot 250')],
      status: 'delivered',
    },
  },
  play: async (run) => {
    await run.sendAll();
    await run.settle();
    run.publish({ store: { CNAME: ['@'] } });
  },
} satisfies Scenario;

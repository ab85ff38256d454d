import { MINUTE } from '../../../src/core/clock.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

/** As many hosts as are looked up. */
const GONE = Array.from({ length: 25 }, (_, n) => `gone${n}`);

export default {
  title:
    'defers mail, and does not bounce it, when so many MX hosts have no address that others are not looked up',
  hosts: { mx: {} },
  zone: () => ({
    '@': { MX: { values: [...GONE.map((name, n) => `${n} ${name}`), '50 mx'], ttl: 60 } },
    ...Object.fromEntries(GONE.map((name) => [name, { '*': 'NXDOMAIN' }])),
  }),
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

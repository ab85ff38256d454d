import { MINUTE } from '../../../src/core/clock.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'sends a deferred message to the new host after the MX record has changed',
  hosts: { old: { script: { rcpt: '451 4.3.0 moving' } }, fresh: {} },
  zone: () => ({ '@': { MX: { values: ['10 old'], ttl: 60 } } }),
  messages: {
    ada: {
      attempts: [
        deferred('451 4.3.0', 'server-error', 5 * MINUTE, 'old rcpt 451'),
        delivered('fresh dot 250'),
      ],
      status: 'delivered',
    },
  },
  play: async (run) => {
    await run.sendAll();
    await run.settle();
    run.publish({ '@': { MX: ['10 fresh'] } });
  },
} satisfies Scenario;

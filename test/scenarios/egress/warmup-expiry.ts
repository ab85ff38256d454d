import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';
import { startWarmup } from '../support/source-addresses.ts';

export default {
  title: 'fails mail as expired if its expiry is before the next day of a warm-up',
  hosts: { mx: {} },
  messages: {
    ada: { marketing: true, attempts: [delivered('mx dot 250')], status: 'delivered' },
    bob: {
      marketing: true,
      attempts: [],
      status: 'failed',
      lastEvent: { reason: 'expired', attempts: 0 },
    },
  },
  play: async (run) => {
    await startWarmup(run, [1, 10], [], { 'delivery.retry.expireMarketing': '30m' });
    await run.send('ada');
    await run.settle();
    await run.send('bob');
  },
} satisfies Scenario;

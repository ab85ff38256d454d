import { MINUTE } from '../../../src/core/clock.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'delivers to other domains while one cannot be reached',
  hosts: { dead: 'unresponsive', mx: {} },
  zone: () => ({ '@': { MX: ['10 mx'] }, down: { MX: ['10 dead'] } }),
  messages: {
    ada: {
      subdomain: 'down',
      attempts: [
        deferred(
          '451 4.4.1',
          'network-error',
          5 * MINUTE,
          'dead connect: timed out after 30 s waiting for the connection',
        ),
        delivered('mx dot 250'),
      ],
      status: 'delivered',
    },
    bob: { attempts: [delivered('mx dot 250')], status: 'delivered' },
  },
  play: async (run) => {
    await run.sendAll();
    await run.settle();
    run.publish({ down: { MX: ['10 mx'] } });
  },
} satisfies Scenario;

import { MINUTE } from '../../../src/core/clock.ts';
import { deferred, delivered } from '../support/attempts.ts';
import { control, resume } from '../support/controls.ts';
import { explained } from '../support/explained.ts';

const POOL = { scope: 'pool', target: 'default' } as const;

export default explained({
  explains: 'no_route',
  text: 'There is no route',
  // The pause of the pool decides; without it, the message would be deferred.
  decides: false,
  hosts: { mx: {} },
  zone: () => ({ '@': { MX: 'SERVFAIL', A: 'SERVFAIL', AAAA: 'SERVFAIL' } }),
  messages: {
    ada: {
      attempts: [deferred('451 4.4.3', 'network-error', 5 * MINUTE), delivered('mx dot 250')],
      status: 'delivered',
    },
  },
  cause: async (run) => {
    await control(run, 'pause', POOL);
    await run.sendAll();
  },
  end: async (run) => {
    await resume(run, POOL);
    await run.settle();
    run.publish({ '@': { MX: ['10 mx'] } });
  },
});

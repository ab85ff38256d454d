import { MINUTE } from '../../../src/core/clock.ts';
import { deferred, delivered } from '../support/attempts.ts';
import { explained } from '../support/explained.ts';

const LOST = 'mx greeting: server closed the connection before the greeting';
const FAILED = {
  attempts: [deferred('451 4.4.1', 'network-error', 5 * MINUTE, LOST), delivered('mx dot 250')],
  status: 'delivered',
} as const;

export default explained({
  explains: 'site_suspended',
  text: 'could not be reached',
  user: 'kim',
  settings: ({ domain }) => ({ 'delivery.shaping': [{ match: domain, connections: 2 }] }),
  hosts: { mx: { script: { greeting: 'drop' } } },
  messages: {
    ada: FAILED,
    bob: FAILED,
    kim: { attempts: [delivered('mx dot 250')], status: 'delivered' },
  },
  cause: async (run) => {
    await run.send('ada');
    await run.send('bob');
    await run.settle();
    await run.send('kim');
    await run.settle();
  },
  end: async (run) => run.sink('mx').program({ script: {} }),
});

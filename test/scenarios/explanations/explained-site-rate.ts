import { delivered } from '../support/attempts.ts';
import { explained } from '../support/explained.ts';

export default explained({
  explains: 'site_rate',
  text: 'allows its next message at',
  user: 'bob',
  settings: ({ domain }) => ({ 'delivery.shaping': [{ match: domain, perSecond: 0.01 }] }),
  hosts: { mx: {} },
  messages: {
    ada: { attempts: [delivered('mx dot 250')], status: 'delivered' },
    bob: { attempts: [delivered('mx dot 250')], status: 'delivered' },
  },
  cause: async (run) => {
    await run.send('ada');
    await run.settle();
    await run.send('bob');
  },
});

import { delivered } from '../support/attempts.ts';
import { explained } from '../support/explained.ts';

export default explained({
  explains: 'route_unknown',
  text: 'being looked up in DNS',
  hosts: { mx: {} },
  zone: () => ({ '@': { MX: 'silent' } }),
  messages: { ada: { attempts: [delivered('mx dot 250')], status: 'delivered' } },
  cause: (run) => run.sendAll(),
  end: async (run) => {
    run.publish({ '@': { MX: ['10 mx'] } });
    // A reload discards the lookup in progress.
    await run.configure({});
  },
});

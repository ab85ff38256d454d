import { delivered } from '../support/attempts.ts';
import { explained } from '../support/explained.ts';

export default explained({
  explains: 'final',
  text: 'It is delivered',
  hosts: { mx: {} },
  messages: { ada: { attempts: [delivered('mx dot 250')], status: 'delivered' } },
  cause: async (run) => {
    await run.sendAll();
    await run.finish();
  },
});

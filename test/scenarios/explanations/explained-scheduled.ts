import { HOUR, iso } from '../../../src/core/clock.ts';
import { delivered } from '../support/attempts.ts';
import { explained } from '../support/explained.ts';

export default explained({
  explains: 'scheduled',
  text: 'It is scheduled for',
  hosts: { mx: {} },
  messages: { ada: { marketing: true, attempts: [delivered('mx dot 250')], status: 'delivered' } },
  cause: async (run) => {
    await run.send('ada', { scheduledAt: iso(run.env.clock.now() + HOUR) });
  },
});

import { MINUTE } from '../../../src/core/clock.ts';
import { inTurn } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import { explained } from '../support/explained.ts';

export default explained({
  explains: 'site_limited',
  text: 'asked to send less',
  user: 'bob',
  hosts: { mx: { script: { mail: inTurn('451 4.7.1 Too many messages, slow down') } } },
  messages: {
    ada: {
      attempts: [deferred('451 4.7.1', 'rate-limited', 5 * MINUTE, 'mx mail 451'), delivered('mx dot 250')],
      status: 'delivered',
    },
    bob: { attempts: [delivered('mx dot 250')], status: 'delivered' },
  },
  cause: async (run) => {
    await run.send('ada');
    await run.settle();
    await run.send('bob');
  },
});

import { MINUTE } from '../../../src/core/clock.ts';
import { inTurn } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import { explained } from '../support/explained.ts';

export default explained({
  explains: 'account_limited',
  text: 'asked to send less mail of this account',
  user: 'bob',
  hosts: { mx: { script: { dot: inTurn('451 4.7.28 unusual rate of unsolicited mail from your domain') } } },
  messages: {
    ada: {
      attempts: [deferred('451 4.7.28', 'rate-limited', 5 * MINUTE, 'mx dot 451'), delivered('mx dot 250')],
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

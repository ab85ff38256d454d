import { MINUTE } from '../../../src/core/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { onConnection } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import { explained } from '../support/explained.ts';

export default explained({
  title: 'explains mail to a new site while sites that do not respond use their share of the sessions',
  explains: 'sessions_used',
  text: 'sites without an answer',
  user: 'bob',
  hosts: { mx: { script: { mail: onConnection(1, 'silent') } } },
  messages: {
    ada: {
      attempts: [
        deferred(
          '451 4.4.1',
          'network-error',
          5 * MINUTE,
          'mx mail: timed out after 5 min waiting for the reply to MAIL',
        ),
        delivered('mx dot 250'),
      ],
      status: 'delivered',
    },
    bob: { attempts: [delivered('mx dot 250')], status: 'delivered' },
  },
  cause: async (run) => {
    await run.send('ada');
    await eventually(
      'the first message to be sent',
      async () => (await run.message('ada')).status === 'sending',
    );
    await run.send('bob');
  },
});

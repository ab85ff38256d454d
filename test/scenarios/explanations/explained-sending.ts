import { MINUTE } from '../../../src/core/clock.ts';
import { onConnection } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import { explained } from '../support/explained.ts';

export default explained({
  explains: 'sending',
  text: 'being sent now',
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
  },
  cause: (run) => run.sendAll(),
});

import { HOUR, MINUTE } from '../../../src/core/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { inTurn } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import { explained } from '../support/explained.ts';

export default explained({
  explains: 'held',
  text: 'verification of its sending domain has failed',
  hosts: { mx: { script: { rcpt: inTurn('451 4.3.0 later') } } },
  messages: {
    ada: {
      attempts: [deferred('451 4.3.0', 'server-error', 5 * MINUTE, 'mx rcpt 451'), delivered('mx dot 250')],
      status: 'delivered',
    },
  },
  cause: async (run) => {
    await run.sendAll();
    await run.settle();
    run.env.setDomainStatus('transactional', 'FAILED');
    await run.env.advance(HOUR);
  },
  end: async (run) => {
    run.env.setDomainStatus('transactional', 'SUCCESS');
    await eventually('the message to be sent', async () => (await run.message('ada')).status === 'delivered');
  },
});

import { MINUTE } from '../../../src/core/clock.ts';
import { inTurn } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import { control, resume } from '../support/controls.ts';
import { explained } from '../support/explained.ts';

export default explained({
  explains: 'rejected',
  text: 'maintenance',
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
    await control(run, 'bounce');
  },
  end: (run) => resume(run),
});

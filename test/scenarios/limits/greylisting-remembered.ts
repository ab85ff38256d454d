import { MINUTE } from '../../../src/core/clock.ts';
import { inTurn } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

const GREYLISTED = '450 4.2.0 Recipient address rejected: Greylisted';

export default {
  title: 'retries the next greylisted message after the wait that the site accepted before',
  settings: () => ({ 'delivery.retry.greylisted': '7m' }),
  hosts: { mx: { script: { rcpt: inTurn(GREYLISTED, undefined, GREYLISTED) } } },
  messages: {
    ada: {
      attempts: [deferred('450 4.2.0', 'greylisted', 7 * MINUTE, 'mx rcpt 450'), delivered('mx dot 250')],
      status: 'delivered',
    },
    // With another setting: what worked decides.
    bob: {
      attempts: [deferred('450 4.2.0', 'greylisted', undefined, 'mx rcpt 450'), delivered('mx dot 250')],
      status: 'delivered',
    },
  },
  play: async (run) => {
    await run.send('ada');
    await run.finish();
    await run.send('bob');
  },
} satisfies Scenario;

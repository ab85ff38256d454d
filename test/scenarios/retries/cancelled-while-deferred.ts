import { HOUR, MINUTE } from '../../../src/core/clock.ts';
import { inTurn } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'never sends a message that is cancelled while it is deferred',
  hosts: { mx: { script: { rcpt: inTurn('451 4.3.0 later') } } },
  messages: {
    ada: {
      attempts: [deferred('451 4.3.0', 'server-error', 5 * MINUTE)],
      status: 'cancelled',
      lastEvent: { reason: 'cancelled' },
    },
    bob: { attempts: [delivered('mx dot 250')], status: 'delivered' },
  },
  play: async (run) => {
    const id = await run.send('ada');
    await run.settle();
    await run.env.api.post(`/web-setup/messages/${id}/cancel`);
    await run.env.advance(HOUR);
    await run.send('bob');
  },
} satisfies Scenario;

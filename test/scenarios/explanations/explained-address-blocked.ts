import { MINUTE } from '../../../src/core/clock.ts';
import { deferred, delivered } from '../support/attempts.ts';
import { explained } from '../support/explained.ts';

const EARLY = {
  attempts: [deferred('554', 'reputation-block', 5 * MINUTE, 'mx greeting 554'), delivered('mx dot 250')],
  status: 'delivered',
} as const;

export default explained({
  explains: 'address_blocked',
  text: 'blocks mail from',
  user: 'late',
  hosts: { mx: { script: { greeting: '554 IP=192.0.2.25 - None/bad reputation. (NOWL)' } } },
  messages: {
    early0: EARLY,
    early1: EARLY,
    early2: EARLY,
    late: { attempts: [delivered('mx dot 250')], status: 'delivered' },
  },
  cause: async (run) => {
    for (const user of ['early0', 'early1', 'early2']) {
      await run.send(user);
      await run.settle();
    }
    await run.send('late');
  },
  end: async (run) => run.sink('mx').program({ script: {} }),
});

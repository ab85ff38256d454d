import { explained } from '../support/explained.ts';
import { many } from '../support/many.ts';
import { startWarmup } from '../support/source-addresses.ts';

export default explained({
  explains: 'warmup',
  text: "waits for tomorrow's warm-up quota",
  user: 'user2',
  hosts: { mx: {} },
  messages: many(3, 'user'),
  // Transactional mail may use twice the quota.
  cause: async (run) => {
    await startWarmup(run, [1, 10]);
    await run.sendAll();
    await run.settle();
  },
});

import { expect } from 'vitest';
import { many } from '../support/many.ts';
import type { Scenario } from '../support/scenario.ts';
import { startWarmup } from '../support/source-addresses.ts';

export default {
  title: 'sends at most twice the quota of a warm-up of transactional mail',
  hosts: { mx: {} },
  messages: many(7, 'user'),
  play: async (run) => {
    await startWarmup(run, [2, 10]);
    await run.sendAll();
    await run.settle();
    expect(run.sink('mx').count).toBe(4);
  },
} satisfies Scenario;

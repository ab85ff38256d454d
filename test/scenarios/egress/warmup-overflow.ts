import { expect } from 'vitest';
import { many } from '../support/many.ts';
import type { Scenario } from '../support/scenario.ts';
import { NEW_ADDRESS, sourcesAt, startWarmup, WARM, WARM_ADDRESS } from '../support/source-addresses.ts';

export default {
  title: 'sends mail above the quota of a warm-up from another address of the pool',
  hosts: { mx: {} },
  messages: many(8, 'reader', { marketing: true }),
  play: async (run) => {
    await startWarmup(run, [2, 4], [WARM]);
    await run.sendAll();
  },
  verify: (run) => {
    expect(sourcesAt(run)).toEqual({ [NEW_ADDRESS]: 2, [WARM_ADDRESS]: 6 });
  },
} satisfies Scenario;

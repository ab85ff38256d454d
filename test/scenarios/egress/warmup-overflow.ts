import { expect } from 'vitest';
import { many } from '../support/many.ts';
import type { Scenario } from '../support/scenario.ts';
import { NEW_ADDRESS, sourcesAt, startWarmup, WARM, WARM_ADDRESS } from '../support/source-addresses.ts';

export default {
  title: 'sends what exceeds the quota of a warm-up from the warm address of the pool',
  hosts: { mx: {} },
  messages: many(8, 'reader', { marketing: true }),
  play: async (run) => {
    await startWarmup(run, [2, 4], [WARM]);
    await run.sendAll();
  },
  verify: (run) => {
    const { [NEW_ADDRESS]: fresh = 0, [WARM_ADDRESS]: warm = 0, ...others } = sourcesAt(run);
    expect(fresh).toBeLessThanOrEqual(2);
    expect(fresh + warm).toBe(8);
    expect(others).toEqual({});
  },
} satisfies Scenario;

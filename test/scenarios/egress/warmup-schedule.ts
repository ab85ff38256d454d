import { expect } from 'vitest';
import { many } from '../support/many.ts';
import type { Scenario } from '../support/scenario.ts';
import { expectReason, NEW_ADDRESS, sourcesAt, startWarmup } from '../support/source-addresses.ts';

export default {
  title:
    'sends no more than the quota of a warm-up; the rest waits for the next day, as its explanation states',
  hosts: { mx: {} },
  messages: many(5, 'reader', { marketing: true }),
  play: async (run) => {
    await startWarmup(run, [2, 4]);
    await run.sendAll();
    await run.settle();
    expect(sourcesAt(run)).toEqual({ [NEW_ADDRESS]: 2 });
    await expectReason(run, 'reader4', 'warmup', "waits for tomorrow's warm-up quota");
  },
  verify: (run) => expect(sourcesAt(run)).toEqual({ [NEW_ADDRESS]: 5 }),
} satisfies Scenario;

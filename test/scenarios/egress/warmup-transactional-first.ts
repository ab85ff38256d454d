import { expect } from 'vitest';
import { many } from '../support/many.ts';
import type { Scenario } from '../support/scenario.ts';
import { startWarmup } from '../support/source-addresses.ts';

export default {
  title:
    'sends transactional mail when the quota of a warm-up is used up, and marketing mail on the next day',
  hosts: { mx: {} },
  messages: { ...many(4, 'reader', { marketing: true }), ...many(2, 'user') },
  play: async (run) => {
    await startWarmup(run, [2, 10]);
    for (const user of ['reader0', 'reader1', 'reader2', 'reader3']) await run.send(user);
    await run.settle();
    await run.send('user0');
    await run.send('user1');
    await run.settle();
    const statuses = async (user: string) => (await run.message(user)).status;
    expect(await Promise.all(['user0', 'user1'].map(statuses))).toEqual(['delivered', 'delivered']);
    expect(await Promise.all(['reader2', 'reader3'].map(statuses))).toEqual(['queued', 'queued']);
    expect(run.sink('mx').count).toBe(4);
  },
} satisfies Scenario;

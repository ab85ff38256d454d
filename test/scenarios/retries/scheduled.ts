import { expect } from 'vitest';
import { HOUR } from '../../../src/core/clock.ts';
import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'sends a scheduled message at its time, and not before',
  hosts: { mx: {} },
  messages: { ada: { marketing: true, attempts: [delivered('mx dot 250')], status: 'delivered' } },
  play: async (run) => {
    const at = run.env.clock.now() + 6 * HOUR;
    await run.send('ada', { scheduledAt: new Date(at).toISOString() });
    await run.settle();
    await run.env.advance(5 * HOUR);
    await run.settle();
    expect(run.sink('mx').sessions).toEqual([]);
    await run.finish();
    expect(run.env.clock.now()).toBeGreaterThanOrEqual(at);
  },
} satisfies Scenario;

import { expect } from 'vitest';
import { HOUR } from '../../../src/core/clock.ts';
import { delivered } from '../support/attempts.ts';
import { control, resume } from '../support/controls.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'does not expire mail while it is paused, and attempts it once afterwards',
  settings: () => ({ 'delivery.retry.expireTransactional': '1h' }),
  hosts: { mx: {} },
  messages: { ada: { attempts: [delivered('mx dot 250')], status: 'delivered' } },
  play: async (run) => {
    await control(run, 'pause');
    await run.send('ada');
    await run.settle();
    await run.env.advance(3 * HOUR);
    await run.settle();
    expect((await run.message('ada')).status).toBe('queued');
    await resume(run);
  },
} satisfies Scenario;

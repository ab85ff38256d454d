import { expect } from 'vitest';
import { MINUTE } from '../../../src/core/clock.ts';
import { inTurn } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'retries a deferred message immediately on request over the API',
  hosts: { mx: { script: { rcpt: inTurn('451 4.3.0 later') } } },
  messages: {
    ada: {
      attempts: [deferred('451 4.3.0', 'server-error', 5 * MINUTE), delivered('mx dot 250')],
      status: 'delivered',
    },
  },
  play: async (run) => {
    const id = await run.send('ada');
    await run.settle();
    const before = run.env.clock.now();
    await run.env.api.post(`/web-setup/messages/${id}/retry`);
    await run.settle();
    expect((await run.message('ada')).status).toBe('delivered');
    expect(run.env.clock.now() - before).toBeLessThan(4 * MINUTE);
  },
} satisfies Scenario;

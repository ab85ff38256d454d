import { expect } from 'vitest';
import { SECOND } from '../../../src/core/clock.ts';
import { inTurn } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'attempts no other mail for the 90 seconds that the reply of a site states, then sends it',
  settings: ({ domain }) => ({ 'delivery.shaping': [{ match: domain, connections: 1 }] }),
  hosts: { mx: { script: { mail: inTurn('451 4.7.1 Too many messages, try again in 90 seconds') } } },
  messages: {
    ada: {
      attempts: [
        deferred('451 4.7.1', 'rate-limited', { named: 90 * SECOND }, 'mx mail 451'),
        delivered('mx dot 250'),
      ],
      status: 'delivered',
    },
    // Not attempted before that time.
    bob: { attempts: [delivered('mx dot 250')], status: 'delivered' },
  },
  play: async (run) => {
    await run.send('ada');
    await run.settle();
    await run.send('bob');
    await run.settle();
    expect(run.sink('mx').sessions).toHaveLength(1);
    expect((await run.message('bob')).status).toBe('queued');
  },
} satisfies Scenario;

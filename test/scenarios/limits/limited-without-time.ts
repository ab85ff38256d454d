import { expect } from 'vitest';
import { MINUTE } from '../../../src/core/clock.ts';
import { inTurn } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';
import { expectReason } from '../support/source-addresses.ts';

export default {
  title:
    'sends nothing for a minute to a site whose rate limit states no time, and explains that the site asked for it',
  settings: ({ domain }) => ({ 'delivery.shaping': [{ match: domain, connections: 1 }] }),
  hosts: { mx: { script: { mail: inTurn('451 4.7.1 Too many messages, slow down') } } },
  messages: {
    ada: {
      attempts: [deferred('451 4.7.1', 'rate-limited', 5 * MINUTE, 'mx mail 451'), delivered('mx dot 250')],
      status: 'delivered',
    },
    bob: { attempts: [delivered('mx dot 250')], status: 'delivered' },
  },
  play: async (run) => {
    await run.send('ada');
    await run.settle();
    await run.send('bob');
    await run.settle();
    expect(run.sink('mx').sessions).toHaveLength(1);
    await expectReason(run, 'bob', 'site_limited', 'asked to send less');
  },
} satisfies Scenario;

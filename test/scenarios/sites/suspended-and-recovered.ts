import { expect } from 'vitest';
import { MINUTE } from '../../../src/core/clock.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

const LOST = 'mx greeting: server closed the connection before the greeting';

export default {
  title:
    'suspends a site that cannot be reached, attempts no other mail to it, and sends it after a successful probe',
  settings: ({ domain }) => ({ 'delivery.shaping': [{ match: domain, connections: 2 }] }),
  hosts: { mx: { script: { greeting: 'drop' } } },
  messages: {
    ada: {
      attempts: [deferred('451 4.4.1', 'network-error', 5 * MINUTE, LOST), delivered('mx dot 250')],
      status: 'delivered',
    },
    bob: {
      attempts: [deferred('451 4.4.1', 'network-error', 5 * MINUTE, LOST), delivered('mx dot 250')],
      status: 'delivered',
    },
    // Not attempted while the site is suspended.
    eve: { attempts: [delivered('mx dot 250')], status: 'delivered' },
    kim: { attempts: [delivered('mx dot 250')], status: 'delivered' },
  },
  play: async (run) => {
    await run.send('ada');
    await run.send('bob');
    await run.settle();
    await run.send('eve');
    await run.send('kim');
    await run.settle();
    expect(run.sink('mx').sessions).toHaveLength(2);
    run.sink('mx').program({ script: {} });
  },
} satisfies Scenario;

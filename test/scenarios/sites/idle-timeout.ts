import { expect } from 'vitest';
import { MINUTE } from '../../../src/core/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'sends QUIT on a connection that was idle for a minute',
  settings: ({ domain }) => ({ 'delivery.shaping': [{ match: domain, connections: 1 }] }),
  hosts: { mx: {} },
  messages: {
    ada: { attempts: [delivered('mx dot 250')], status: 'delivered' },
    bob: { attempts: [delivered('mx dot 250')], status: 'delivered' },
  },
  connections: { mx: ['EHLO MAIL RCPT DATA . QUIT', 'EHLO MAIL RCPT DATA . QUIT'] },
  play: async (run) => {
    await run.send('ada');
    await run.settle();
    expect(run.sink('mx').open).toBe(1);
    await run.env.advance(MINUTE);
    await eventually('the connection to be closed', () => run.sink('mx').open === 0);
    await run.send('bob');
  },
} satisfies Scenario;

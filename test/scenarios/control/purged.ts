import { expect } from 'vitest';
import { changeQueued, control, resume } from '../support/controls.ts';
import type { Scenario } from '../support/scenario.ts';

const PURGED = {
  attempts: [],
  status: 'cancelled',
  events: ['email_failed'],
  lastEvent: { reason: 'cancelled', diagnostic: 'purged by the operator: wrong list' },
} as const;

export default {
  title: 'cancels queued mail that the operator purges',
  hosts: { mx: {} },
  messages: { ada: PURGED, bob: PURGED },
  connections: { mx: [] },
  play: async (run) => {
    await control(run, 'pause');
    await run.sendAll();
    await run.settle();
    expect(await changeQueued(run, 'purge', { reason: 'wrong list' })).toBe(2);
    await resume(run);
  },
} satisfies Scenario;

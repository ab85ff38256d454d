import { expect } from 'vitest';
import { delivered } from '../support/attempts.ts';
import { changeQueued, control, resume } from '../support/controls.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'sends queued mail to the next hop that the operator chose, and later mail to the MX host',
  hosts: { mx: {}, other: {} },
  zone: () => ({ '@': { MX: ['10 mx'] } }),
  messages: {
    ada: { attempts: [delivered()], status: 'delivered' },
    bob: { attempts: [delivered('mx dot 250')], status: 'delivered' },
  },
  connections: { mx: ['EHLO MAIL RCPT DATA . QUIT'], other: ['EHLO MAIL RCPT DATA . QUIT'] },
  play: async (run) => {
    await control(run, 'pause');
    await run.send('ada');
    await run.settle();
    expect(await changeQueued(run, 'reroute', { via: `${run.address('other')}:${run.env.port}` })).toBe(1);
    await resume(run);
    await run.finish();
    await run.send('bob');
  },
} satisfies Scenario;

import { eventually } from '../../support/eventually.ts';
import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'replaces an idle connection that the host has ended with 421',
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
    run.sink('mx').send('421 4.4.2 Idle for too long\r\n');
    await eventually('the connection to be closed', () => run.sink('mx').open === 0);
    await run.send('bob');
  },
} satisfies Scenario;

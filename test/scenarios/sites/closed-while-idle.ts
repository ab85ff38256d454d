import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'replaces an idle connection that the host has closed, without a failed session',
  settings: ({ domain }) => ({ 'delivery.shaping': [{ match: domain, connections: 1 }] }),
  hosts: { mx: {} },
  messages: {
    ada: { attempts: [delivered('mx dot 250')], status: 'delivered' },
    bob: { attempts: [delivered('mx dot 250')], status: 'delivered' },
  },
  connections: { mx: ['EHLO MAIL RCPT DATA .', 'EHLO MAIL RCPT DATA . QUIT'] },
  play: async (run) => {
    await run.send('ada');
    await run.settle();
    run.sink('mx').disconnect();
    await run.send('bob');
  },
} satisfies Scenario;

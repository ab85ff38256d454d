import { bounced, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'opens another connection when the host rejects RSET',
  hosts: {
    mx: { script: { rset: '500 5.5.1 Not implemented' }, recipients: { 'ada@': '550 5.1.1 No such user' } },
  },
  messages: {
    ada: { attempts: [bounced('550 5.1.1', 'invalid-recipient', 'mx rcpt 550')], status: 'bounced' },
    bob: { attempts: [delivered('mx dot 250')], status: 'delivered' },
  },
  connections: { mx: ['EHLO MAIL RCPT DATA RSET MAIL RCPT DATA', 'EHLO MAIL RCPT DATA . QUIT'] },
  suppressed: ['ada'],
  play: async (run) => {
    await run.send('ada');
    await run.settle();
    await run.send('bob');
  },
} satisfies Scenario;

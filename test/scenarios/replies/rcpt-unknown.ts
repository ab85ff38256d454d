import { bounced } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'bounces and suppresses a recipient that does not exist, without trying the next host',
  hosts: { mx: { script: { rcpt: '550 5.1.1 No such user here' } }, mx2: {} },
  messages: {
    ada: {
      attempts: [bounced('550 5.1.1', 'invalid-recipient', 'mx rcpt 550')],
      status: 'bounced',
      lastEvent: { bounceType: 'hard', suppressed: true, source: 'smtp', diagnostic: 'No such user here' },
    },
  },
  connections: { mx2: [] },
  suppressed: ['ada'],
} satisfies Scenario;

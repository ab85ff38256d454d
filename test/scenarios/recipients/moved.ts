import { bounced } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'suppresses a recipient who has moved',
  hosts: { mx: { script: { rcpt: '551 5.1.6 User has moved to another address' } } },
  messages: {
    ada: {
      attempts: [bounced('551 5.1.6', 'invalid-recipient', 'mx rcpt 551')],
      status: 'bounced',
      lastEvent: { bounceType: 'hard', suppressed: true },
    },
  },
  suppressed: ['ada'],
} satisfies Scenario;

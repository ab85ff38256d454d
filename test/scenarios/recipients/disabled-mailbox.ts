import { bounced } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'suppresses a recipient whose mailbox is disabled',
  hosts: { mx: { script: { rcpt: '550 5.2.1 The email account that you tried to reach is disabled' } } },
  messages: {
    ada: {
      attempts: [bounced('550 5.2.1', 'inactive-mailbox', 'mx rcpt 550')],
      status: 'bounced',
      lastEvent: { bounceType: 'hard', suppressed: true },
    },
  },
  suppressed: ['ada'],
} satisfies Scenario;

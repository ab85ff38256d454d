import { bounced } from '../support/attempts.ts';
import { postfix } from '../support/real-servers.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'suppresses a recipient that a Postfix does not know',
  hosts: { mx: postfix({ domain: 'postfix-unknown-user.example', users: ['bob'] }) },
  messages: {
    ada: {
      attempts: [bounced('550 5.1.1', 'invalid-recipient', 'mx rcpt 550 TLS verified')],
      status: 'bounced',
      lastEvent: { bounceType: 'hard', suppressed: true },
    },
  },
  suppressed: ['ada'],
} satisfies Scenario;

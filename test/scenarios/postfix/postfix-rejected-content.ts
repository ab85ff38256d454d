import { bounced } from '../support/attempts.ts';
import { postfix } from '../support/real-servers.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'does not suppress the recipient when a Postfix rejects the content',
  hosts: {
    mx: postfix({
      domain: 'postfix-rejected-content.example',
      users: ['ada', 'bob'],
      parameters: { header_checks: 'regexp:{{/^Subject: Buy now/ REJECT Rejected as spam}}' },
    }),
  },
  messages: {
    ada: {
      body: { subject: 'Buy now' },
      attempts: [bounced('550 5.7.1', 'spam-block', 'mx dot 550 TLS verified')],
      status: 'bounced',
      events: ['email_sent', 'email_rejected'],
    },
    bob: {
      attempts: [{ reply: '250 2.0.0', action: 'deliver', sessions: ['mx dot 250 TLS verified'] }],
      status: 'delivered',
    },
  },
} satisfies Scenario;

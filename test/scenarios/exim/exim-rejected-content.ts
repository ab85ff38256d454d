import { bounced } from '../support/attempts.ts';
import { exim } from '../support/real-servers.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'does not suppress the recipient when an Exim rejects the content',
  hosts: {
    mx: exim({
      domain: 'exim-rejected-content.example',
      users: ['ada'],
      dataAcl: '  deny message = This message scored 12.3 spam points',
    }),
  },
  messages: {
    ada: {
      attempts: [bounced('550', 'spam-block', 'mx dot 550 TLS verified')],
      status: 'bounced',
      events: ['email_sent', 'email_rejected'],
    },
  },
} satisfies Scenario;

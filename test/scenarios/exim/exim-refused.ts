import { exim } from '../support/real-servers.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'bounces mail that an Exim refuses because the user is unknown, and suppresses the address',
  hosts: {
    mx: exim({
      domain: 'exim-refused.example',
      users: ['bob'],
      acl: '  deny local_parts = ada\n        message = Unknown user',
    }),
  },
  messages: {
    ada: {
      attempts: [
        {
          reply: '550',
          action: 'bounce',
          classification: 'invalid-recipient',
          sessions: ['mx rcpt 550 TLS'],
        },
      ],
      status: 'bounced',
      lastEvent: { suppressed: true },
    },
  },
  suppressed: ['ada'],
} satisfies Scenario;

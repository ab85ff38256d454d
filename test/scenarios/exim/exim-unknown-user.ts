import { bounced } from '../support/attempts.ts';
import { exim } from '../support/real-servers.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'suppresses a recipient that an Exim does not know',
  hosts: {
    mx: exim({
      domain: 'exim-unknown-user.example',
      users: ['bob'],
      acl: '  require verify = recipient',
    }),
  },
  messages: {
    ada: {
      attempts: [bounced('550', 'invalid-recipient', 'mx rcpt 550 TLS verified')],
      status: 'bounced',
      lastEvent: { bounceType: 'hard', suppressed: true },
    },
  },
  suppressed: ['ada'],
} satisfies Scenario;

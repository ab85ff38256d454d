import { bounced } from '../support/attempts.ts';
import { exim } from '../support/real-servers.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'bounces a message that exceeds the SIZE limit of an Exim',
  hosts: {
    mx: exim({ domain: 'exim-too-large.example', users: ['ada'], main: 'message_size_limit = 20000' }),
  },
  messages: {
    ada: {
      body: {
        text: `{{company_address_text}} {{unsubscribe_email_text}}${'A line of text.\n'.repeat(3000)}`,
      },
      attempts: [bounced('552 5.3.4', 'message-too-large')],
      status: 'bounced',
      events: ['email_sent', 'email_rejected'],
      lastEvent: { source: 'local' },
    },
  },
} satisfies Scenario;

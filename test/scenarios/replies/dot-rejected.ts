import { bounced } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'reports a message that is rejected as spam, without suppressing the recipient',
  hosts: { mx: { script: { dot: '554 5.7.1 Message rejected as spam by content filter' } }, mx2: {} },
  messages: {
    ada: {
      attempts: [bounced('554 5.7.1', 'spam-block', 'mx dot 554')],
      events: ['email_sent', 'email_rejected'],
      status: 'bounced',
      lastEvent: { bounceType: 'block' },
    },
  },
  connections: { mx: ['EHLO MAIL RCPT DATA . QUIT'], mx2: [] },
} satisfies Scenario;

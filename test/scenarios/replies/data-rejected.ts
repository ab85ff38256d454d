import { bounced } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'bounces a message that the host rejects at DATA, without trying the next host',
  hosts: { mx: { script: { data: '554 5.7.1 Transaction not permitted by policy' } }, mx2: {} },
  messages: {
    ada: {
      attempts: [bounced('554 5.7.1', 'policy-block', 'mx data 554')],
      events: ['email_sent', 'email_rejected'],
      status: 'bounced',
    },
  },
  connections: { mx2: [] },
} satisfies Scenario;

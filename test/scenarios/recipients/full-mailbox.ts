import { bounced } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'does not suppress a recipient whose mailbox is full',
  hosts: { mx: { script: { rcpt: '552 5.2.2 The recipient mailbox is full' } } },
  messages: {
    ada: {
      attempts: [bounced('552 5.2.2', 'mailbox-full', 'mx rcpt 552')],
      status: 'bounced',
      lastEvent: { bounceType: 'soft', suppressed: false },
    },
  },
} satisfies Scenario;

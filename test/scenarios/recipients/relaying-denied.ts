import { bounced } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'does not suppress the recipient when the host denies relaying',
  hosts: { mx: { script: { rcpt: '554 5.7.1 <ada@recipients.example>: Relay access denied' } } },
  messages: {
    ada: {
      attempts: [bounced('554 5.7.1', 'relay-denied', 'mx rcpt 554')],
      status: 'bounced',
      lastEvent: { bounceType: 'soft', suppressed: false },
    },
  },
} satisfies Scenario;

import { bounced } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'does not suppress the recipient when our address is blocklisted, even with the code 550 5.1.1',
  hosts: { mx: { script: { rcpt: '550 5.1.1 Mail from 192.0.2.25 rejected: listed at zen.spamhaus.org' } } },
  messages: {
    ada: {
      attempts: [bounced('550 5.1.1', 'reputation-block', 'mx rcpt 550')],
      status: 'bounced',
      lastEvent: { bounceType: 'block', suppressed: false },
    },
  },
} satisfies Scenario;

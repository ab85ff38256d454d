import { bounced } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

const BLOCKED = '554 5.7.1 Service unavailable; Client host [192.0.2.25] blocked using zen.spamhaus.org';

export default {
  title: 'bounces mail when every host rejects our address as blocklisted, without suppressing the recipient',
  hosts: {
    mx: { script: { greeting: BLOCKED } },
    mx2: { script: { greeting: BLOCKED } },
  },
  messages: {
    ada: {
      attempts: [bounced('554 5.7.1', 'reputation-block', 'mx greeting 554', 'mx2 greeting 554')],
      status: 'bounced',
      lastEvent: { bounceType: 'block', suppressed: false, source: 'smtp' },
    },
  },
  connections: { mx: ['QUIT'], mx2: ['QUIT'] },
} satisfies Scenario;

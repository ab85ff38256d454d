import { bounced } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  // RFC 7505
  title: 'bounces mail to a domain with a null MX, and suppresses the recipient',
  hosts: { mx: {} },
  zone: () => ({ '@': { MX: ['0 .'] } }),
  messages: {
    ada: {
      attempts: [bounced('556 5.1.10', 'invalid-domain')],
      status: 'bounced',
      lastEvent: { bounceType: 'hard', source: 'local', suppressed: true },
    },
  },
  connections: { mx: [] },
  suppressed: ['ada'],
} satisfies Scenario;

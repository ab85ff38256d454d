import { bounced } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'bounces mail to a domain that does not exist, without suppressing the recipient the first time',
  hosts: {},
  zone: () => ({ '@': { '*': 'NXDOMAIN' } }),
  messages: {
    ada: {
      attempts: [bounced('550 5.1.2', 'invalid-domain')],
      status: 'bounced',
      lastEvent: { bounceType: 'hard', source: 'local', suppressed: false },
    },
  },
} satisfies Scenario;

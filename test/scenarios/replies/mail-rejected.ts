import { bounced } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

const REJECTED = '550 5.7.1 Sender address rejected: Access denied';

export default {
  title: 'bounces mail whose sender every host rejects, without suppressing the recipient',
  hosts: { mx: { script: { mail: REJECTED } }, mx2: { script: { mail: REJECTED } } },
  messages: {
    ada: {
      attempts: [bounced('550 5.7.1', 'policy-block', 'mx mail 550', 'mx2 mail 550')],
      status: 'bounced',
      lastEvent: { bounceType: 'block', suppressed: false },
    },
  },
} satisfies Scenario;

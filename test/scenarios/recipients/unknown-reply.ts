import { bounced } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'does not suppress a recipient after the first unclassified 550',
  hosts: { mx: { script: { rcpt: '550 Nope' } } },
  messages: {
    ada: {
      attempts: [bounced('550', 'unclassified', 'mx rcpt 550')],
      status: 'bounced',
      lastEvent: { bounceType: 'hard', suppressed: false },
    },
  },
} satisfies Scenario;

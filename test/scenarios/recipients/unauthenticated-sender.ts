import { bounced } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'does not suppress the recipient when the sender is not authenticated',
  hosts: {
    mx: { script: { dot: '550 5.7.26 This mail has been blocked because the sender is unauthenticated' } },
  },
  messages: {
    ada: {
      attempts: [bounced('550 5.7.26', 'authentication-failed', 'mx dot 550')],
      status: 'bounced',
      lastEvent: { bounceType: 'block', suppressed: false },
    },
  },
} satisfies Scenario;

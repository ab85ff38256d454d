import type { Scenario } from '../support/scenario.ts';
import { toPrimary } from '../support/secondary-lane.ts';

export default {
  title: 'does not send a message that fails DMARC over the secondary lane',
  hosts: {
    mx: { script: { rcpt: toPrimary('550 5.7.1 Email rejected per DMARC policy for kunde.example') } },
  },
  messages: {
    ada: {
      attempts: [{ reply: '550 5.7.1', action: 'bounce', sessions: ['mx rcpt 550'] }],
      status: 'bounced',
      lastEvent: { suppressed: false },
    },
  },
} satisfies Scenario;

import type { Scenario } from '../support/scenario.ts';
import { toPrimary } from '../support/secondary-lane.ts';

export default {
  title: 'does not send a message that is refused because of its content over the secondary lane',
  hosts: { mx: { script: { rcpt: toPrimary('554 5.7.1 Message content rejected as spam') } } },
  messages: {
    ada: {
      attempts: [{ reply: '554 5.7.1', action: 'bounce', sessions: ['mx rcpt 554'] }],
      status: 'bounced',
      events: ['email_sent', 'email_rejected'],
    },
  },
} satisfies Scenario;

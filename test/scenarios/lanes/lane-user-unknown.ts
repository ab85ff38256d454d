import type { Scenario } from '../support/scenario.ts';
import { toPrimary } from '../support/secondary-lane.ts';

export default {
  title: 'does not send a message to an unknown user over the secondary lane',
  hosts: { mx: { script: { rcpt: toPrimary('550 5.1.1 No such user') } } },
  messages: {
    ada: {
      attempts: [{ reply: '550 5.1.1', action: 'bounce', sessions: ['mx rcpt 550'] }],
      status: 'bounced',
      lastEvent: { suppressed: true },
    },
  },
  suppressed: ['ada'],
} satisfies Scenario;

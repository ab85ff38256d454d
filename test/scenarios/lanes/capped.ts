import type { Scenario } from '../support/scenario.ts';
import { CHANGES_LANE, LISTING, toPrimary } from '../support/secondary-lane.ts';

export default {
  title: 'bounces mail above the limit of the secondary lane, without suppressing the recipient',
  settings: () => ({ secondary: { type: 'builtin', pool: 'secondary', share: 1, perHour: 1 } }),
  hosts: { mx: { script: { rcpt: toPrimary(LISTING) } } },
  messages: {
    ada: CHANGES_LANE,
    bob: {
      attempts: [{ reply: '554 5.7.1', action: 'bounce', sessions: ['mx rcpt 554'] }],
      status: 'bounced',
      lastEvent: { suppressed: false },
    },
  },
  play: async (run) => {
    await run.send('ada');
    await run.finish();
    await run.send('bob');
  },
} satisfies Scenario;

import { bounced, delivered } from '../support/attempts.ts';
import { control, resume } from '../support/controls.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title:
    'bounces mail while the operator rejects its destination, without suppressing recipients, and delivers it afterwards',
  hosts: { mx: {} },
  messages: {
    ada: {
      attempts: [bounced('550 5.7.1', 'policy-block')],
      status: 'bounced',
      lastEvent: { bounceType: 'block', source: 'local', suppressed: false },
    },
    bob: { attempts: [delivered('mx dot 250')], status: 'delivered' },
  },
  connections: { mx: ['EHLO MAIL RCPT DATA . QUIT'] },
  play: async (run) => {
    await control(run, 'bounce');
    await run.send('ada');
    await run.finish();
    await resume(run);
    await run.send('bob');
  },
} satisfies Scenario;

import { PLATFORM } from '../../support/in-process-daemon.ts';
import { bounced } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'fails mail as a loop when the most preferred MX host is this server',
  hosts: { backup: {} },
  zone: () => ({ '@': { MX: [`10 ${PLATFORM}.`, '20 backup'] } }),
  messages: {
    ada: {
      attempts: [bounced('554 5.4.6', 'routing-loop')],
      status: 'failed',
      lastEvent: { reason: 'loop' },
    },
  },
  connections: { backup: [] },
} satisfies Scenario;

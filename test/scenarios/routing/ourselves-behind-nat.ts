import { PLATFORM } from '../../support/in-process-daemon.ts';
import { bounced } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

const PUBLIC_ADDRESS = '192.0.2.25';

export default {
  title: 'fails mail as a loop when the most preferred MX host is this server behind NAT, under another name',
  settings: () => ({ 'delivery.egress': [{ name: 'main', publicAddress: PUBLIC_ADDRESS }] }),
  hosts: { backup: {} },
  zone: () => ({
    '@': { MX: ['10 mail', '20 backup'] },
    mail: { A: [PUBLIC_ADDRESS] },
    [`${PLATFORM}.`]: { A: [PUBLIC_ADDRESS] },
  }),
  messages: {
    ada: {
      attempts: [bounced('554 5.4.6', 'routing-loop')],
      status: 'failed',
      lastEvent: { reason: 'loop' },
    },
  },
  connections: { backup: [] },
} satisfies Scenario;

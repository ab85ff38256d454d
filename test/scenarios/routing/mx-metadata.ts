import { bounced } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'never connects to a link-local address',
  settings: () => ({ 'delivery.allowPrivateNetworks': false }),
  hosts: {},
  zone: () => ({ '@': { MX: ['10 mx'] }, mx: { A: ['169.254.169.254'] } }),
  messages: {
    ada: {
      attempts: [bounced('554 5.4.4', 'invalid-domain')],
      status: 'bounced',
      lastEvent: { bounceType: 'soft', source: 'local', suppressed: false },
    },
  },
} satisfies Scenario;

import { bounced } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'never connects to a private address',
  settings: () => ({ 'delivery.allowPrivateNetworks': false }),
  hosts: {},
  zone: () => ({ '@': { MX: ['10 mx'] }, mx: { A: ['10.1.2.3'] } }),
  messages: {
    ada: {
      attempts: [bounced('554 5.4.4', 'invalid-domain')],
      status: 'bounced',
      lastEvent: { bounceType: 'soft', source: 'local', suppressed: false },
    },
  },
} satisfies Scenario;

import { bounced } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'never connects to the loopback address',
  settings: () => ({ 'delivery.allowPrivateNetworks': false }),
  hosts: {},
  zone: () => ({ '@': { MX: ['10 mx'] }, mx: { A: ['127.0.0.1'] } }),
  messages: {
    ada: {
      attempts: [bounced('554 5.4.4', 'invalid-domain')],
      status: 'bounced',
      lastEvent: { bounceType: 'soft', source: 'local', suppressed: false },
    },
  },
} satisfies Scenario;

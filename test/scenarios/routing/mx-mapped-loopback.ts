import { bounced } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'never connects to the loopback address in IPv6 form',
  settings: () => ({
    'delivery.allowPrivateNetworks': false,
    'delivery.egress': [{ name: 'main', address6: '::1' }],
  }),
  hosts: {},
  zone: () => ({ '@': { MX: ['10 mx'] }, mx: { AAAA: ['::ffff:127.0.0.1'] } }),
  messages: {
    ada: {
      attempts: [bounced('554 5.4.4', 'invalid-domain')],
      status: 'bounced',
      lastEvent: { bounceType: 'soft', source: 'local', suppressed: false },
    },
  },
} satisfies Scenario;

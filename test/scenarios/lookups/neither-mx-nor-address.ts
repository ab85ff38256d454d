import { bounced, deferred } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title:
    'defers mail to a domain with neither MX nor address, and bounces it if there is still none on another day',
  // Waits are spread by 10 %: even the shortest one ends on another day.
  settings: () => ({ 'delivery.retry.first': '28h', 'delivery.retry.max': '28h' }),
  hosts: {},
  zone: () => ({ '@': { TXT: ['nothing else'] } }),
  messages: {
    ada: {
      attempts: [deferred('450 4.1.2', 'invalid-domain', undefined), bounced('550 5.1.2', 'invalid-domain')],
      status: 'bounced',
      lastEvent: { source: 'local', suppressed: false },
    },
  },
} satisfies Scenario;

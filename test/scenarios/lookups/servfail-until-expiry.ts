import { deferred } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'fails mail as expired, without a bounce, when the domain cannot be looked up for two days',
  settings: () => ({ 'delivery.retry.first': '20h', 'delivery.retry.max': '20h' }),
  hosts: {},
  zone: () => ({ '@': { '*': 'SERVFAIL' } }),
  messages: {
    ada: {
      attempts: Array.from({ length: 3 }, () => deferred('451 4.4.3', 'network-error', undefined)),
      status: 'failed',
      lastEvent: { reason: 'expired', lastDiagnostic: 'The domain could not be looked up' },
    },
  },
} satisfies Scenario;

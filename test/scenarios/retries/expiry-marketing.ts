import { deferred } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'fails a marketing message after four days, with the last reply',
  settings: () => ({ 'delivery.retry.first': '40h', 'delivery.retry.max': '40h' }),
  hosts: { mx: { script: { rcpt: '452 4.2.2 Mailbox full' } } },
  messages: {
    ada: {
      marketing: true,
      attempts: Array.from({ length: 3 }, () =>
        deferred('452 4.2.2', 'mailbox-full', undefined, 'mx rcpt 452'),
      ),
      status: 'failed',
      lastEvent: { reason: 'expired', attempts: 3, lastDiagnostic: 'Mailbox full' },
    },
  },
} satisfies Scenario;

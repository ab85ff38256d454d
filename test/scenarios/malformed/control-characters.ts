import { bounced } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'replaces the control characters of a reply, and decodes its text as UTF-8',
  hosts: {
    mx: { script: { rcpt: '550 5.1.1 Empf\u00c3\u00a4nger\u0000 \u001b[31munbekannt\u0007' } },
  },
  messages: {
    ada: {
      attempts: [bounced('550 5.1.1', 'invalid-recipient', 'mx rcpt 550')],
      status: 'bounced',
      lastEvent: { diagnostic: 'Empfänger   [31munbekannt' },
    },
  },
  suppressed: ['ada'],
} satisfies Scenario;

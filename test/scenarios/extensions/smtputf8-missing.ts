import { bounced, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'bounces mail to an address that needs SMTPUTF8 when no host offers it, and delivers other mail',
  settings: ({ domain }) => ({ 'delivery.shaping': [{ match: domain, connections: 1 }] }),
  hosts: { mx: { keywords: ['PIPELINING', '8BITMIME'] }, mx2: { keywords: [] } },
  messages: {
    用户: {
      attempts: [
        bounced(
          '553 5.6.7',
          'protocol-error',
          'mx ehlo: mx.smtputf8-missing.example does not support internationalized addresses (SMTPUTF8)',
          'mx2 ehlo: mx2.smtputf8-missing.example does not support internationalized addresses (SMTPUTF8)',
        ),
      ],
      events: ['email_sent', 'email_rejected'],
      status: 'bounced',
      lastEvent: { source: 'local' },
    },
    ada: { attempts: [delivered()], status: 'delivered' },
  },
} satisfies Scenario;

import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'uses the MX host that supports internationalized addresses',
  hosts: { mx: { keywords: ['PIPELINING', '8BITMIME'] }, mx2: {} },
  messages: {
    用户: {
      attempts: [
        delivered(
          'mx ehlo: mx.smtputf8-at-another-host.example does not support internationalized addresses (SMTPUTF8)',
          'mx2 dot 250',
        ),
      ],
      status: 'delivered',
    },
  },
  connections: { mx: ['EHLO QUIT'], mx2: ['EHLO MAIL RCPT DATA . QUIT'] },
} satisfies Scenario;

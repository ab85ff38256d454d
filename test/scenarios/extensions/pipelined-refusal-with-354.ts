import { bounced } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  // RFC 2920 §3.1: the server may accept DATA although it has refused the only recipient.
  title: 'sends only the final dot when the host accepts DATA after it has refused the recipient',
  hosts: {
    mx: {
      script: { rcpt: '550 5.1.1 No such user', data: '354 go ahead', dot: '554 5.5.1 No valid recipients' },
    },
  },
  messages: {
    ada: { attempts: [bounced('550 5.1.1', 'invalid-recipient', 'mx rcpt 550')], status: 'bounced' },
  },
  connections: { mx: ['EHLO MAIL RCPT DATA . QUIT'] },
  suppressed: ['ada'],
} satisfies Scenario;

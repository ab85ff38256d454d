import { bounced } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'joins the lines of a reply to one text, without their enhanced codes',
  hosts: {
    mx: {
      script: {
        rcpt: [
          '550-5.1.1 The email account that you tried to reach',
          '550-5.1.1 does not exist.',
          '550 5.1.1 Learn more',
        ],
      },
    },
  },
  messages: {
    ada: {
      attempts: [bounced('550 5.1.1', 'invalid-recipient', 'mx rcpt 550')],
      status: 'bounced',
      lastEvent: { diagnostic: 'The email account that you tried to reach does not exist. Learn more' },
    },
  },
  suppressed: ['ada'],
} satisfies Scenario;

import { bounced } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'reports that the content was rejected, without suppressing the recipient',
  hosts: {
    mx: {
      script: {
        dot: '552 5.7.0 This message was blocked because its content presents a potential security issue',
      },
    },
  },
  messages: {
    ada: {
      attempts: [bounced('552 5.7.0', 'content-rejected', 'mx dot 552')],
      events: ['email_sent', 'email_rejected'],
      status: 'bounced',
      lastEvent: { bounceType: 'block' },
    },
  },
} satisfies Scenario;

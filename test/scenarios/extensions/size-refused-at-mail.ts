import { expect } from 'vitest';
import { bounced } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'bounces a message whose SIZE the host refuses at MAIL, and does not suppress the recipient',
  hosts: { mx: { script: { mail: '552 5.3.4 Message size exceeds fixed limit' } } },
  messages: {
    ada: {
      attempts: [bounced('552 5.3.4', 'message-too-large', 'mx mail 552')],
      events: ['email_sent', 'email_rejected'],
      status: 'bounced',
    },
  },
  verify: ({ sink }) => {
    expect(sink('mx').sessions[0]?.commands[1]).toMatch(/^MAIL FROM:<[^>]+> SIZE=\d+$/);
  },
} satisfies Scenario;

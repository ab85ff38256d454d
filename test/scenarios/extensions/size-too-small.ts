import { expect } from 'vitest';
import { bounced } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  // RFC 1870 §6.1: the client does not offer a message that it knows to be too large.
  title: 'bounces a message that exceeds the limit of the host, without offering it',
  hosts: { mx: { keywords: ['PIPELINING', 'SIZE 1000', '8BITMIME'] }, mx2: {} },
  messages: {
    ada: {
      attempts: [bounced('552 5.3.4', 'message-too-large')],
      events: ['email_sent', 'email_rejected'],
      status: 'bounced',
      lastEvent: {
        bounceType: 'soft',
        source: 'local',
        diagnostic: expect.stringMatching(
          /^the message has \d+ bytes, mx\.size-too-small\.example accepts 1000 at most$/,
        ),
      },
    },
  },
  connections: { mx: ['EHLO QUIT'], mx2: [] },
} satisfies Scenario;

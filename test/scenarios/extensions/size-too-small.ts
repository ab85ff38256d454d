import { expect } from 'vitest';
import { bounced } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  // RFC 1870 §6.1: the client does not send a message that exceeds the announced limit.
  title: 'bounces a message that exceeds the SIZE limit of the host, without sending MAIL',
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

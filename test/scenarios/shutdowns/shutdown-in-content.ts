import { delivered } from '../support/attempts.ts';
import { LARGE_ATTACHMENT } from '../support/large-attachment.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'uses the next host when one ends the session with 421 in the middle of the message',
  hosts: {
    mx: { body: { afterBytes: 50_000, answer: { reply: '421 4.3.2 Service shutting down', close: true } } },
    mx2: {},
  },
  messages: {
    ada: {
      body: { attachments: [LARGE_ATTACHMENT] },
      // The session is not compared: the reply may be read before or after the last block of the message.
      attempts: [delivered()],
      status: 'delivered',
    },
  },
  connections: { mx: ['EHLO MAIL RCPT DATA'], mx2: ['EHLO MAIL RCPT DATA . QUIT'] },
} satisfies Scenario;

import { MINUTE } from '../../src/core/clock.ts';
import { inTurn } from './support/answers.ts';
import { deferred, delivered } from './support/attempts.ts';
import { LARGE_ATTACHMENT } from './support/large-attachment.ts';
import { registerScenarios } from './support/register.ts';
import { shutdown } from './support/shutdown.ts';

registerScenarios('shutdowns', {
  'shutdown-after-content': shutdown('dot', 'after the message', 'EHLO MAIL RCPT DATA .'),
  'shutdown-after-data': shutdown('data', 'after DATA', 'EHLO MAIL RCPT DATA'),
  'shutdown-after-ehlo': shutdown('ehlo', 'after EHLO', 'EHLO'),
  'shutdown-after-mail': shutdown('mail', 'after MAIL', 'EHLO MAIL'),
  'shutdown-after-rcpt': shutdown('rcpt', 'after RCPT', 'EHLO MAIL RCPT'),
  'shutdown-everywhere': {
    title: 'defers mail when the only host ends the session with 421, and classifies the text of the reply',
    hosts: {
      mx: {
        script: {
          greeting: inTurn({ reply: '421 4.7.0 Too many connections, try again later', close: true }),
        },
      },
    },
    messages: {
      ada: {
        attempts: [
          deferred('421 4.7.0', 'rate-limited', 5 * MINUTE, 'mx greeting 421: the server ended the session'),
          delivered('mx dot 250'),
        ],
        status: 'delivered',
      },
    },
  },
  'shutdown-in-content': {
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
  },
  'shutdown-in-greeting': shutdown('greeting', 'in place of the greeting', ''),
});

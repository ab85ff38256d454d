import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

const SHUTDOWN = { reply: '421 4.3.2 Service shutting down', close: true } as const;

export default {
  // RFC 5321 §3.8: the 421 ends the session; it is no verdict on the message.
  title: 'uses the next host when one ends the session with 421 after EHLO',
  hosts: { mx: { script: { ehlo: SHUTDOWN } }, mx2: {} },
  messages: {
    ada: {
      attempts: [delivered('mx ehlo 421: the server ended the session', 'mx2 dot 250')],
      status: 'delivered',
    },
  },
  connections: { mx: ['EHLO'], mx2: ['EHLO MAIL RCPT DATA . QUIT'] },
} satisfies Scenario;

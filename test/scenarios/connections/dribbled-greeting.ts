import { onConnection } from '../support/answers.ts';
import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  // RFC 5321 §4.5.3.2.1 recommends five minutes. Received bytes do not extend the timeout.
  title: 'closes a connection whose greeting does not end within a minute',
  hosts: {
    mx: { script: { greeting: onConnection(1, { bytes: '220-Welcome\r\n', everyMs: 5 }) } },
    mx2: {},
  },
  messages: {
    ada: {
      attempts: [delivered('mx greeting: timed out after 60 s waiting for the greeting', 'mx2 dot 250')],
      status: 'delivered',
    },
  },
  connections: { mx: [''], mx2: ['EHLO MAIL RCPT DATA . QUIT'] },
} satisfies Scenario;

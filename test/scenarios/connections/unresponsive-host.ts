import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'uses the next host when a connection to one is not established within 30 seconds',
  hosts: { mx: 'unresponsive', mx2: {} },
  messages: {
    ada: {
      attempts: [delivered('mx connect: timed out after 30 s waiting for the connection', 'mx2 dot 250')],
      status: 'delivered',
    },
  },
  connections: { mx2: ['EHLO MAIL RCPT DATA . QUIT'] },
} satisfies Scenario;

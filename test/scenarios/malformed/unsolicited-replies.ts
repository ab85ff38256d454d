import { onConnection } from '../support/answers.ts';
import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  // Otherwise each of these replies would be matched to a later command, and the last one to a message not yet sent.
  title: 'closes the connection to a server that sends unsolicited replies',
  hosts: {
    mx: {
      script: {
        ehlo: onConnection(1, [
          '250 sink',
          '250 2.1.0 ok',
          '250 2.1.5 ok',
          '354 go ahead',
          '250 2.0.0 taken',
        ]),
      },
    },
    mx2: {},
  },
  messages: {
    ada: {
      attempts: [delivered('mx mail: the server sent an unsolicited reply', 'mx2 dot 250')],
      status: 'delivered',
    },
  },
} satisfies Scenario;

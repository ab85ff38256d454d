import { onConnection } from '../support/answers.ts';
import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  // Each later reply would be taken for that of another command: the last one would accept a message that it refuses.
  title: 'closes the connection to a server that replies more often than it was asked',
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

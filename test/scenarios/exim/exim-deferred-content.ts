import { deferred } from '../support/attempts.ts';
import { exim } from '../support/real-servers.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'tries a message again that an Exim defers after its content',
  hosts: {
    mx: exim({
      domain: 'exim-deferred-content.example',
      users: ['ada'],
      // Deferred unless it was seen before, however recently.
      dataAcl: `  defer message = Temporary local problem - please try later
        !seen = -0s / key=$sender_address`,
    }),
  },
  messages: {
    ada: {
      attempts: [
        deferred('451', 'server-error', undefined, 'mx dot 451 TLS verified'),
        { reply: '250', action: 'deliver', sessions: ['mx dot 250 TLS verified'] },
      ],
      status: 'delivered',
    },
  },
} satisfies Scenario;

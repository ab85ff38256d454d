import { deferred } from '../support/attempts.ts';
import { exim } from '../support/real-servers.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'retries a message that an Exim defers after its content',
  hosts: {
    mx: exim({
      domain: 'exim-deferred-content.example',
      users: ['ada'],
      // The condition `seen` is true from the second attempt on; -0s: without a minimum time.
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

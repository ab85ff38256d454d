import { MINUTE } from '../../../src/core/clock.ts';
import { deferred } from '../support/attempts.ts';
import { exim } from '../support/real-servers.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'delivers at the second attempt to an Exim that greylists',
  hosts: {
    mx: exim({
      domain: 'exim-greylisting.example',
      users: ['ada'],
      // The condition `seen` is true from the second attempt on; -0s: without a minimum time.
      acl: `  defer message = Greylisted - please try again later
        !seen = -0s / key=$sender_host_address-$sender_address-$local_part`,
    }),
  },
  messages: {
    ada: {
      attempts: [
        deferred('451', 'greylisted', 2 * MINUTE, 'mx rcpt 451 TLS verified'),
        { reply: '250', action: 'deliver', sessions: ['mx dot 250 TLS verified'] },
      ],
      status: 'delivered',
    },
  },
} satisfies Scenario;

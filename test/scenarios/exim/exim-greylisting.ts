import { MINUTE } from '../../../src/core/clock.ts';
import { exim } from '../support/real-servers.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'delivers to an Exim that greylists the first attempt of a sender, at the second one',
  hosts: {
    mx: exim({
      domain: 'exim-greylisting.example',
      users: ['ada'],
      // The file exists after the first attempt.
      acl: `
  defer condition = \${if !exists{$spool_directory/seen}}
        set acl_m_seen = \${run{/usr/bin/touch $spool_directory/seen}}
        message = Greylisted, please try again later`,
    }),
  },
  messages: {
    ada: {
      attempts: [
        {
          reply: '451',
          action: 'defer',
          classification: 'greylisted',
          wait: 2 * MINUTE,
          sessions: ['mx rcpt 451 TLS'],
        },
        { reply: '250', action: 'deliver', sessions: ['mx dot 250 TLS'] },
      ],
      status: 'delivered',
    },
  },
} satisfies Scenario;

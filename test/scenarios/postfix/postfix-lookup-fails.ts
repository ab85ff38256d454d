import { delivered } from '../support/attempts.ts';
import { postfix } from '../support/real-servers.ts';
import type { Scenario } from '../support/scenario.ts';

const DOMAIN = 'postfix-lookup-fails.example';

export default {
  title: 'uses the next host when the user database of a Postfix cannot be reached',
  hosts: {
    mx: postfix({
      domain: DOMAIN,
      users: ['ada'],
      // Nothing listens at the discard port.
      parameters: { virtual_mailbox_maps: 'tcp:127.0.0.1:9' },
    }),
    backup: postfix({ domain: DOMAIN, users: ['ada'], label: 'backup' }),
  },
  messages: {
    ada: {
      attempts: [delivered('mx rcpt 451 TLS verified', 'backup dot 250 TLS verified')],
      status: 'delivered',
    },
  },
} satisfies Scenario;

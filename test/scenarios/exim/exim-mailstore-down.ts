import { delivered } from '../support/attempts.ts';
import { exim } from '../support/real-servers.ts';
import type { Scenario } from '../support/scenario.ts';

const DOMAIN = 'exim-mailstore-down.example';

export default {
  title: 'uses the next host when an Exim cannot verify the recipient',
  hosts: {
    // A router of this Exim defers the user `slow`.
    mx: exim({ domain: DOMAIN, users: ['ada'], acl: '  require verify = recipient' }),
    backup: {},
  },
  messages: {
    slow: {
      attempts: [delivered('mx rcpt 451 TLS verified', 'backup dot 250')],
      status: 'delivered',
    },
  },
} satisfies Scenario;

import { requiring } from '../support/deferred-for-tls.ts';
import { exim } from '../support/real-servers.ts';
import type { Scenario } from '../support/scenario.ts';

const DELIVERED = { reply: '250', action: 'deliver', sessions: ['mx dot 250 TLS verified'] } as const;

export default {
  title: 'delivers to an Exim over TLS with a verified certificate',
  settings: requiring('verified'),
  hosts: { mx: exim({ domain: 'exim-tls.example', users: ['ada', 'bob'] }) },
  messages: {
    ada: { attempts: [DELIVERED], status: 'delivered' },
    bob: { attempts: [DELIVERED], status: 'delivered' },
  },
} satisfies Scenario;

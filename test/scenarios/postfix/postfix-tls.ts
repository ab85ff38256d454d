import { requiring } from '../support/deferred-for-tls.ts';
import { postfix } from '../support/real-servers.ts';
import type { Scenario } from '../support/scenario.ts';

const DELIVERED = { reply: '250 2.0.0', action: 'deliver', sessions: ['mx dot 250 TLS verified'] } as const;

export default {
  title: 'delivers to a Postfix over TLS with a verified certificate',
  settings: requiring('verified'),
  hosts: { mx: postfix({ domain: 'postfix-tls.example', users: ['ada', 'bob'] }) },
  messages: {
    ada: { attempts: [DELIVERED], status: 'delivered' },
    bob: { attempts: [DELIVERED], status: 'delivered' },
  },
} satisfies Scenario;

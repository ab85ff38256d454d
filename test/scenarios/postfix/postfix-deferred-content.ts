import { startGreylisting } from '../../support/postfix-services.ts';
import { deferred, delivered } from '../support/attempts.ts';
import { postfix } from '../support/real-servers.ts';
import type { ExpectedMessage, Scenario } from '../support/scenario.ts';

const DEFERRED_ONCE: ExpectedMessage = {
  attempts: [
    deferred('450 4.7.1', 'greylisted', undefined, 'mx dot 450 TLS verified'),
    delivered('mx dot 250 TLS verified'),
  ],
  status: 'delivered',
};

export default {
  title: 'retries messages that a Postfix defers after their content, over one connection',
  // Postfix does not end the transaction of such a message.
  settings: ({ domain }) => ({ 'delivery.shaping': [{ match: domain, connections: 1 }] }),
  hosts: {
    mx: postfix({
      domain: 'postfix-deferred-content.example',
      users: ['ada', 'bob'],
      service: {
        start: startGreylisting,
        parameters: (endpoint) => ({ smtpd_end_of_data_restrictions: `check_policy_service ${endpoint}` }),
      },
    }),
  },
  messages: { ada: DEFERRED_ONCE, bob: DEFERRED_ONCE },
} satisfies Scenario;

import { startGreylisting } from '../../support/postfix-services.ts';
import { deferred, delivered } from '../support/attempts.ts';
import { postfix } from '../support/real-servers.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'retries a message that a Postfix defers after its content',
  hosts: {
    mx: postfix({
      domain: 'postfix-deferred-content.example',
      users: ['ada'],
      service: {
        start: startGreylisting,
        parameters: (endpoint) => ({ smtpd_end_of_data_restrictions: `check_policy_service ${endpoint}` }),
      },
    }),
  },
  messages: {
    ada: {
      attempts: [
        deferred('450 4.7.1', 'greylisted', undefined, 'mx dot 450 TLS verified'),
        delivered('mx dot 250 TLS verified'),
      ],
      status: 'delivered',
    },
  },
} satisfies Scenario;

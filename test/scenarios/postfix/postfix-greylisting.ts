import { MINUTE } from '../../../src/core/clock.ts';
import { startGreylisting } from '../../support/postfix-services.ts';
import { deferred, delivered } from '../support/attempts.ts';
import { postfix } from '../support/real-servers.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'delivers at the second attempt to a Postfix that greylists with a policy service',
  hosts: {
    mx: postfix({
      domain: 'postfix-greylisting.example',
      users: ['ada'],
      service: {
        start: startGreylisting,
        parameters: (endpoint) => ({ smtpd_recipient_restrictions: `check_policy_service ${endpoint}` }),
      },
    }),
  },
  messages: {
    ada: {
      attempts: [
        deferred('450 4.7.1', 'greylisted', 2 * MINUTE, 'mx rcpt 450 TLS verified'),
        delivered('mx dot 250 TLS verified'),
      ],
      status: 'delivered',
    },
  },
} satisfies Scenario;

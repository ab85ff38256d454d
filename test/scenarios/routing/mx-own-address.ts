import { bounced } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  // RFC 5321 §5.1: a loop through another name.
  title: 'fails mail to a domain whose MX host has an address of this server',
  hosts: {},
  zone: () => ({ '@': { MX: ['10 mx'] }, mx: { A: ['192.0.2.25'] } }),
  messages: {
    ada: {
      attempts: [bounced('554 5.4.6', 'routing-loop')],
      status: 'failed',
      events: ['email_sent', 'email_failed'],
      lastEvent: { reason: 'loop' },
    },
  },
} satisfies Scenario;

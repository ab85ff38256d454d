import { delivered } from '../support/attempts.ts';
import { AUTHORITY } from '../support/environment.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'delivers to a host with a valid certificate when verification is required',
  settings: ({ domain }) => ({ 'delivery.shaping': [{ match: domain, tls: 'verified' }] }),
  hosts: { mx: { tls: AUTHORITY.issue(['mx.verified.example']) } },
  messages: { ada: { attempts: [delivered('mx dot 250 TLS verified')], status: 'delivered' } },
  connections: { mx: ['EHLO STARTTLS TLS EHLO MAIL RCPT DATA . QUIT'] },
} satisfies Scenario;

import { selfSigned } from '../../support/certificates.ts';
import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'uses the next host when encryption is required and one does not offer it',
  settings: ({ domain }) => ({ 'delivery.shaping': [{ match: domain, tls: 'required' }] }),
  hosts: { mx: {}, mx2: { tls: selfSigned(['mx2.example']) } },
  messages: {
    ada: {
      attempts: [
        delivered('mx starttls: mx.required-next-host.example does not offer STARTTLS', 'mx2 dot 250 TLS'),
      ],
      status: 'delivered',
    },
  },
  connections: { mx: ['EHLO QUIT'], mx2: ['EHLO STARTTLS TLS EHLO MAIL RCPT DATA . QUIT'] },
} satisfies Scenario;

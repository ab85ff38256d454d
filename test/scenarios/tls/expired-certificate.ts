import { delivered } from '../support/attempts.ts';
import { AUTHORITY } from '../support/environment.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'encrypts although the certificate has expired',
  hosts: { mx: { tls: AUTHORITY.issue(['mx.expired-certificate.example'], new Date('2020-01-01')) } },
  messages: {
    ada: { attempts: [delivered('mx dot 250 TLS')], status: 'delivered', lastEvent: { tls: 'TLSv1.3' } },
  },
  connections: { mx: ['EHLO STARTTLS TLS EHLO MAIL RCPT DATA . QUIT'] },
} satisfies Scenario;

import { delivered } from '../support/attempts.ts';
import { AUTHORITY } from '../support/environment.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'encrypts although the certificate is that of another host',
  hosts: { mx: { tls: AUTHORITY.issue(['mail.elsewhere.example']) } },
  messages: {
    ada: { attempts: [delivered('mx dot 250 TLS')], status: 'delivered', lastEvent: { tls: 'TLSv1.3' } },
  },
  connections: { mx: ['EHLO STARTTLS TLS EHLO MAIL RCPT DATA . QUIT'] },
} satisfies Scenario;

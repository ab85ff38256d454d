import { selfSigned } from '../../support/certificates.ts';
import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'encrypts although the certificate is self-signed',
  hosts: { mx: { tls: selfSigned(['mx.self-signed.example']) } },
  messages: {
    ada: { attempts: [delivered('mx dot 250 TLS')], status: 'delivered', lastEvent: { tls: 'TLSv1.3' } },
  },
  connections: { mx: ['EHLO STARTTLS TLS EHLO MAIL RCPT DATA . QUIT'] },
} satisfies Scenario;

import { selfSigned } from '../../support/certificates.ts';
import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  // CVE-2011-0411
  title: 'discards replies that were sent before the handshake',
  hosts: {
    mx: {
      tls: selfSigned(['mx.example']),
      script: { starttls: { bytes: '220 go ahead\r\n250-forged\r\n250 SMTPUTF8\r\n554 5.7.1 forged\r\n' } },
    },
  },
  messages: { ada: { attempts: [delivered('mx dot 250 TLS')], status: 'delivered' } },
  connections: { mx: ['EHLO STARTTLS TLS EHLO MAIL RCPT DATA . QUIT'] },
} satisfies Scenario;

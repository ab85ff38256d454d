import { MINUTE } from '../../../src/core/clock.ts';
import { selfSigned } from '../../support/certificates.ts';
import { deferred, delivered } from '../support/attempts.ts';
import { AUTHORITY } from '../support/environment.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'defers mail when verification is required and the certificate is self-signed',
  settings: ({ domain }) => ({ 'delivery.shaping': [{ match: domain, connections: 1, tls: 'verified' }] }),
  hosts: { mx: { tls: selfSigned(['mx.verified-self-signed.example']) } },
  messages: {
    ada: {
      attempts: [
        deferred(
          '454 4.7.5',
          'tls-failed',
          5 * MINUTE,
          'mx starttls: TLS handshake failed: self-signed certificate',
        ),
        delivered('mx dot 250 TLS verified'),
      ],
      status: 'delivered',
    },
  },
  connections: { mx: ['EHLO STARTTLS', 'EHLO STARTTLS TLS EHLO MAIL RCPT DATA . QUIT'] },
  play: async (run) => {
    await run.sendAll();
    await run.settle();
    run.sink('mx').program({ tls: AUTHORITY.issue(['mx.verified-self-signed.example']) });
  },
} satisfies Scenario;

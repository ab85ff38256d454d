import { MINUTE } from '../../../src/core/clock.ts';
import { deferred, delivered } from '../support/attempts.ts';
import { AUTHORITY } from '../support/environment.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'defers mail when verification is required and the certificate has expired',
  settings: ({ domain }) => ({ 'delivery.shaping': [{ match: domain, connections: 1, tls: 'verified' }] }),
  hosts: { mx: { tls: AUTHORITY.issue(['mx.verified-expired.example'], new Date('2020-01-01')) } },
  messages: {
    ada: {
      attempts: [
        deferred(
          '454 4.7.5',
          'tls-failed',
          5 * MINUTE,
          'mx starttls: TLS handshake failed: certificate has expired',
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
    run.sink('mx').program({ tls: AUTHORITY.issue(['mx.verified-expired.example']) });
  },
} satisfies Scenario;

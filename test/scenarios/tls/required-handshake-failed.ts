import { MINUTE } from '../../../src/core/clock.ts';
import { selfSigned } from '../../support/certificates.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'defers mail when encryption is required and the handshake fails, without plain text',
  settings: ({ domain }) => ({ 'delivery.shaping': [{ match: domain, connections: 1, tls: 'required' }] }),
  hosts: { mx: { tls: 'garbage' } },
  messages: {
    ada: {
      attempts: [
        deferred(
          '454 4.7.5',
          'tls-failed',
          5 * MINUTE,
          'mx starttls: TLS handshake failed: wrong version number',
        ),
        delivered('mx dot 250 TLS'),
      ],
      status: 'delivered',
    },
  },
  connections: { mx: ['EHLO STARTTLS', 'EHLO STARTTLS TLS EHLO MAIL RCPT DATA . QUIT'] },
  play: async (run) => {
    await run.sendAll();
    await run.settle();
    run.sink('mx').program({ tls: selfSigned(['mx.example']) });
  },
} satisfies Scenario;

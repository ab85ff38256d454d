import { MINUTE } from '../../../src/core/clock.ts';
import { selfSigned } from '../../support/certificates.ts';
import { deferred, delivered } from '../support/attempts.ts';
import { AUTHORITY } from '../support/environment.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'defers the mail of a route that requires a valid certificate until its host has one',
  settings: ({ domain, port }) => ({
    'delivery.routes': [{ match: domain, host: `relay.${domain}`, port, tls: 'verified' }],
  }),
  hosts: { relay: { tls: selfSigned(['relay.route-verified-tls.example']) } },
  messages: {
    ada: {
      attempts: [
        deferred(
          '454 4.7.5',
          'tls-failed',
          5 * MINUTE,
          'relay starttls: TLS handshake failed: self-signed certificate',
        ),
        delivered('relay dot 250 TLS verified'),
      ],
      status: 'delivered',
    },
  },
  play: async (run) => {
    await run.sendAll();
    await run.settle();
    run.sink('relay').program({ tls: AUTHORITY.issue(['relay.route-verified-tls.example']) });
  },
} satisfies Scenario;

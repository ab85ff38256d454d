import { MINUTE } from '../../../src/core/clock.ts';
import { selfSigned } from '../../support/certificates.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'defers the mail of a route that requires encryption until its host offers it',
  settings: ({ domain, address, port }) => ({
    'delivery.routes': [{ match: domain, host: address('relay'), port, tls: 'required' }],
  }),
  hosts: { relay: {} },
  messages: {
    ada: {
      attempts: [deferred('454 4.7.5', 'tls-failed', 5 * MINUTE), delivered()],
      status: 'delivered',
      lastEvent: { tls: 'TLSv1.3' },
    },
  },
  connections: { relay: ['EHLO QUIT', 'EHLO STARTTLS TLS EHLO MAIL RCPT DATA . QUIT'] },
  play: async (run) => {
    await run.sendAll();
    await run.settle();
    run.sink('relay').program({ tls: selfSigned(['relay.example']) });
  },
} satisfies Scenario;

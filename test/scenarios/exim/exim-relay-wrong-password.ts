import { eximRelay } from '../support/exim-relay.ts';
import { LISTED, overRelay, RELAY_LOGIN, relaySettings } from '../support/relay.ts';
import type { Scenario } from '../support/scenario.ts';

const title = 'defers mail of the secondary lane while the relay rejects the login';

export default {
  ...overRelay(title, eximRelay('exim-relay-wrong-password.example'), {
    attempts: [
      LISTED,
      { reply: '535', action: 'defer', sessions: ['relay auth 535 TLS verified'] },
      { reply: '250', action: 'deliver', sessions: ['relay dot 250 TLS verified'] },
    ],
    status: 'delivered',
    events: ['email_sent', 'email_delayed', 'email_delayed', 'email_delivered'],
  }),
  settings: relaySettings('wrong'),
  play: async (run) => {
    const { domain, env } = run;
    await run.sendAll();
    await run.settle();
    await run.configure(relaySettings(RELAY_LOGIN.password)({ domain, port: env.port }));
  },
} satisfies Scenario;

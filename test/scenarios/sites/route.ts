import { expect } from 'vitest';
import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'sends the mail of a route to its host and port, without querying MX records',
  settings: ({ domain, address, port }) => ({
    'delivery.routes': [{ match: domain, host: address('relay'), port }],
  }),
  hosts: { mx: {}, relay: {} },
  zone: () => ({ '@': { MX: 'SERVFAIL' } }),
  messages: { ada: { attempts: [delivered()], status: 'delivered' } },
  connections: { mx: [], relay: ['EHLO MAIL RCPT DATA . QUIT'] },
  verify: ({ env, domain }) => expect(env.daemon.dns.asked(domain, 'MX')).toBe(0),
} satisfies Scenario;

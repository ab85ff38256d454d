import { expect } from 'vitest';
import { MINUTE } from '../../../src/core/clock.ts';
import { inTurn } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

const CLOSED = 'mx greeting 421: the server ended the session';
const TOO_MANY = { reply: '421 4.7.0 Too many connections from your IP', close: true } as const;

export default {
  title: 'sends nothing for a minute to a site that refuses further connections, and does not suspend it',
  settings: ({ domain }) => ({ 'delivery.shaping': [{ match: domain, connections: 1 }] }),
  hosts: { mx: { script: { greeting: inTurn(TOO_MANY, TOO_MANY) } } },
  messages: {
    ada: {
      attempts: [
        deferred('421 4.7.0', 'rate-limited', 5 * MINUTE, CLOSED),
        deferred('421 4.7.0', 'rate-limited', 10 * MINUTE, CLOSED),
        delivered('mx dot 250'),
      ],
      status: 'delivered',
    },
  },
  verify: async (run) => {
    const metrics = await (await fetch(`${run.env.daemon.url}/metrics`)).text();
    expect(metrics).not.toContain(`postrider_delivery_site_suspended_seconds{site="${run.domain}`);
  },
} satisfies Scenario;

import { expect } from 'vitest';
import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  // RFC 5321 §5.1: hosts of equal preference share the load.
  title: 'distributes mail over MX hosts of equal preference',
  settings: ({ domain }) => ({
    'delivery.shaping': [{ match: `*.${domain}`, connections: 1, messagesPerConnection: 1 }],
  }),
  hosts: { mx: {}, mx2: {} },
  zone: () =>
    Object.fromEntries(Array.from({ length: 24 }, (_, n) => [`d${n}`, { MX: ['10 mx', '10 mx2'] }])),
  messages: Object.fromEntries(
    Array.from({ length: 24 }, (_, n) => [
      `user${n}`,
      { subdomain: `d${n}`, attempts: [delivered()], status: 'delivered' as const },
    ]),
  ),
  verify: ({ sink }) => {
    // The probability that one host gets everything is one in eight million.
    expect(sink('mx').count).toBeGreaterThan(0);
    expect(sink('mx2').count).toBeGreaterThan(0);
  },
} satisfies Scenario;

import { expect } from 'vitest';
import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'opens no more connections to a site than its shaping allows',
  settings: ({ domain }) => ({ 'delivery.shaping': [{ match: domain, connections: 2 }] }),
  hosts: { mx: { script: { dot: { reply: '250 2.0.0 taken', delayMs: 20 } } } },
  messages: Object.fromEntries(
    Array.from({ length: 12 }, (_, n) => [
      `user${n}`,
      { attempts: [delivered('mx dot 250')], status: 'delivered' as const },
    ]),
  ),
  verify: ({ sink }) => {
    expect(sink('mx').peak).toBe(2);
    expect(sink('mx').sessions).toHaveLength(2);
  },
} satisfies Scenario;

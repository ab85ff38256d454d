import { expect } from 'vitest';
import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  // RFC 5321 §3.2
  title: 'sends HELO to a host that does not know EHLO, and uses no extensions',
  hosts: { mx: { script: { ehlo: '500 5.5.1 Command unrecognized' } } },
  messages: { ada: { attempts: [delivered('mx dot 250')], status: 'delivered' } },
  connections: { mx: ['EHLO HELO MAIL RCPT DATA . QUIT'] },
  verify: ({ sink }) => {
    const [session] = sink('mx').sessions;
    expect(session?.commands[2]).toMatch(/^MAIL FROM:<[^>]+>$/);
    expect(session?.pipelined).toBe(0);
  },
} satisfies Scenario;

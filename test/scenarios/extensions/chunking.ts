import { expect } from 'vitest';
import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'sends later messages of a connection in one write with the commands before them (RFC 3030)',
  settings: ({ domain }) => ({ 'delivery.shaping': [{ match: domain, connections: 1 }] }),
  hosts: { mx: { keywords: ['PIPELINING', 'CHUNKING', '8BITMIME'] } },
  messages: {
    ada: { attempts: [delivered('mx dot 250')], status: 'delivered' },
    bob: { attempts: [delivered('mx dot 250')], status: 'delivered' },
    eve: { attempts: [delivered('mx dot 250')], status: 'delivered' },
  },
  connections: { mx: ['EHLO MAIL RCPT DATA . MAIL RCPT BDAT . MAIL RCPT BDAT . QUIT'] },
  verify: ({ sink }) => expect(sink('mx').sessions[0]?.pipelined).toBe(3 * 2),
} satisfies Scenario;

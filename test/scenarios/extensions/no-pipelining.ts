import { expect } from 'vitest';
import { MINUTE } from '../../../src/core/clock.ts';
import { inTurn } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  // RFC 2920 §3.1
  title: 'waits for the reply to each command when the host does not offer PIPELINING',
  hosts: {
    mx: { keywords: ['SIZE 50000000', '8BITMIME'], script: { rcpt: inTurn('450 4.2.1 Mailbox busy') } },
  },
  messages: {
    ada: {
      attempts: [
        deferred('450 4.2.1', 'inactive-mailbox', 5 * MINUTE, 'mx rcpt 450'),
        delivered('mx dot 250'),
      ],
      status: 'delivered',
    },
  },
  connections: { mx: ['EHLO MAIL RCPT QUIT', 'EHLO MAIL RCPT DATA . QUIT'] },
  verify: ({ sink }) => expect(sink('mx').sessions.map(({ pipelined }) => pipelined)).toEqual([0, 0]),
} satisfies Scenario;

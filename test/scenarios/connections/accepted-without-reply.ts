import { MINUTE } from '../../../src/core/clock.ts';
import { onConnection } from '../support/answers.ts';
import { deferred, delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  /*
   * The host has accepted the message, and its reply is lost. The client cannot distinguish this from a host that has not
   * accepted the message; without a reply it remains responsible and sends again (RFC 1047 §2, RFC 5321 §4.2.5).
   */
  title: 'sends a message again when the reply that accepted it is lost',
  hosts: { mx: { script: { dot: onConnection(1, { accepted: 'reset' }) } }, mx2: {} },
  messages: {
    ada: {
      attempts: [
        deferred(
          '451 4.4.2',
          'network-error',
          5 * MINUTE,
          'mx dot: server reset the connection after the message, without a reply',
        ),
        delivered('mx dot 250'),
      ],
      status: 'delivered',
      accepted: 2,
    },
  },
  connections: { mx: ['EHLO MAIL RCPT DATA .', 'EHLO MAIL RCPT DATA . QUIT'], mx2: [] },
} satisfies Scenario;

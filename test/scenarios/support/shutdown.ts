import type { SinkPhase } from '../../support/smtp-sink-session.ts';
import { delivered } from './attempts.ts';
import type { Scenario } from './scenario.ts';

/**
 * A host that ends the session with 421 in this phase, after these commands: the next host is used. A 421 ends the session
 * and states nothing about the message (RFC 5321 §3.8). `when`: the end of the title.
 */
export function shutdown(phase: SinkPhase, when: string, commands: string): Scenario {
  return {
    title: `uses the next host when one ends the session with 421 ${when}`,
    hosts: {
      mx: { script: { [phase]: { reply: '421 4.3.2 Service shutting down', close: true } } },
      mx2: {},
    },
    messages: {
      ada: {
        attempts: [delivered(`mx ${phase} 421: the server ended the session`, 'mx2 dot 250')],
        status: 'delivered',
      },
    },
    connections: { mx: [commands], mx2: ['EHLO MAIL RCPT DATA . QUIT'] },
  };
}

import { MINUTE } from '../../../src/core/clock.ts';
import type { Answer } from '../../support/smtp-sink-replies.ts';
import type { SinkPhase } from '../../support/smtp-sink-session.ts';
import { onConnection } from './answers.ts';
import { deferred, delivered } from './attempts.ts';
import type { Scenario } from './scenario.ts';

/** How the first connection to the host fails. */
interface FailedConnection extends Pick<Scenario, 'title'> {
  phase: SinkPhase;
  /** The answer of the host in this phase. */
  answer: Answer;
  /** The commands that the host receives on this connection. */
  commands: string;
  /** The recorded session: `mx mail: …`. */
  session: string;
}

/** A host with which the first session fails. The message is deferred, and delivered over a second connection. */
export function failedConnection(options: FailedConnection): Scenario {
  const { title, phase, answer, commands, session } = options;
  return {
    title,
    hosts: { mx: { script: { [phase]: onConnection(1, answer) } } },
    messages: {
      ada: {
        attempts: [deferred('451 4.4.1', 'network-error', 5 * MINUTE, session), delivered('mx dot 250')],
        status: 'delivered',
      },
    },
    connections: { mx: [commands, 'EHLO MAIL RCPT DATA . QUIT'] },
  };
}

import type { Answer } from '../../support/smtp-sink-replies.ts';
import type { Script } from '../../support/smtp-sink-session.ts';

/** The answers one after the other, then the usual ones; undefined: the usual one. */
export function inTurn(...answers: readonly (Answer | undefined)[]): Script {
  let next = 0;
  return () => answers[next++];
}

/** The answer `times` times, then the usual ones. */
export function repeated(times: number, answer: Answer): Script {
  return inTurn(...Array.from({ length: times }, () => answer));
}

/** The answer on the connection with this number, from 1. */
export function onConnection(number: number, answer: Answer): Script {
  return (session) => (session.number === number ? answer : undefined);
}

import type { Answer } from '../../support/smtp-sink-replies.ts';
import type { Script } from '../../support/smtp-sink-session.ts';

/** Answers the first commands with these answers in order, later ones with the default. Undefined: the default. */
export function inTurn(...answers: readonly (Answer | undefined)[]): Script {
  let next = 0;
  return () => answers[next++];
}

/** Answers the first `times` commands with the answer, later ones with the default. */
export function repeated(times: number, answer: Answer): Script {
  return inTurn(...Array.from({ length: times }, () => answer));
}

/** Answers with the answer on the connection with this number (the first is 1), and with the default on others. */
export function onConnection(number: number, answer: Answer): Script {
  return (session) => (session.number === number ? answer : undefined);
}

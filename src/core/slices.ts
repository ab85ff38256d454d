import { createTurns } from './turns.ts';

/**
 * Long computations in slices, so that none of them blocks the event loop. Work is written as a generator that
 * yields often; `inSlices` runs it a few milliseconds at a time and lets timers, sockets and other work run in
 * between. Accounts share that time fairly (see `Turns`).
 */
export type { Work } from './turns.ts';
export { withoutPause } from './turns.ts';

/** Of the event loop of this process, of which there is one. */
export const eventLoopTurns = createTurns();

/** Runs an account's work to its end; what does not fit into the current iteration runs in turns of the account. */
export const inSlices = eventLoopTurns.run;

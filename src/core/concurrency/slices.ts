import { createTurns } from './turns.ts';

/*
 * Runs long computations in slices, so that none of them blocks the event loop. Work is a generator that yields often;
 * `inSlices` runs it a few milliseconds at a time and lets timers, sockets and other work run in between. Accounts
 * share that time fairly (`createTurns`).
 */

export type { Order, Work } from './turns.ts';
export { withoutPause } from './turns.ts';

/** The turns on the event loop of this process. */
export const eventLoopTurns = createTurns();

/** Runs an account's work to completion: what does not fit in the current iteration runs in turns of the account. */
export const inSlices = eventLoopTurns.run;

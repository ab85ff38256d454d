import { MINUTE } from '../core/clock.ts';
import { createLoop } from '../core/concurrency/loop.ts';
import type { Context } from '../store/context.ts';

/* Pauses of marketing mail that a person chose on the preference page. They end by themselves, at most a minute late. */

const INTERVAL_MS = MINUTE;
/** Pauses that one unit of work ends. */
const BATCH_SIZE = 500;

/** Starts nothing; the loop runs at its start, and then each minute. */
export function createPauses({ writer, clock, log }: Pick<Context, 'writer' | 'clock' | 'log'>) {
  return createLoop({
    name: 'contact-pauses',
    run: async () => {
      for (let ended = BATCH_SIZE; ended === BATCH_SIZE; ) {
        ended = await writer.run((tx) => tx.contacts.endPauses(clock.now(), BATCH_SIZE));
      }
    },
    intervalMs: INTERVAL_MS,
    log,
  });
}

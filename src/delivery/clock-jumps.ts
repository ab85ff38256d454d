import { DAY, SECOND } from '../core/clock.ts';
import type { Context } from '../store/context.ts';
import type { Tables } from '../store/tables.ts';

const BATCH_SIZE = 500;
/** The longest wait, as a multiple of the configured one: each wait is spread by up to 10 %. */
const MAX_SPREAD_FACTOR = 1.1;

interface Step {
  after: number;
  /** Moves the next messages after a seq and returns the last one's; null: there are no more. */
  move(tables: Tables, after: number): number | null;
  /** Called in a unit of work that found no more messages, and therefore changed nothing that could be rolled back. */
  complete?(): void;
}

/**
 * Moves the times in the queue when the clock is set: they are dates, but represent durations ("try again in five
 * minutes", "expires in two days"). Set back: the remaining wait of deferred messages does not change. Set forward:
 * messages that came due are sent, which does no harm, and none expires because of it (core/expiry-clock). The date for which
 * a sender scheduled a message does not change.
 *
 * Likewise, mail that was postponed because no source address could send it becomes due when the operator changes that.
 *
 * Units of work move 500 messages each; the steps that remain are in memory only. The first `run` also shortens waits
 * that are longer than the schedule (at most `maxWaitMs`) or a reply allows: a clock that was ahead before the start caused
 * them. `isStopping` ends a run after the step in progress.
 */
export function createQueueRebase(
  { clock, expiry, writer, log }: Pick<Context, 'clock' | 'expiry' | 'writer' | 'log'>,
  { maxWaitMs, isStopping }: { maxWaitMs: number; isStopping(): boolean },
) {
  const steps: Step[] = [];
  let started = false;

  function plan(jump: number): void {
    log.warn(
      { seconds: Math.round(jump / SECOND) },
      'system clock was set; moving due times and expiry of waiting mail',
    );
    if (jump < 0) {
      const shift = { ms: -jump, now: clock.now(), dueAfter: clock.now() };
      steps.push({ after: 0, move: (tx, after) => tx.queue.makeEarlier(shift, after, BATCH_SIZE) });
    }
    steps.push({
      after: 0,
      move: (tx, after) => tx.queue.moveExpiry(jump, after, BATCH_SIZE),
      // Messages that are stored from now on have dates after the step.
      complete: () => expiry.moved(jump),
    });
  }

  /** Shortens waits that are longer than the maximum: they were written before this start, while the clock was ahead. */
  function planStart(): void {
    const now = clock.now();
    // A reply may name a wait of up to a day.
    const dueAfter = now + Math.max(maxWaitMs, DAY) * MAX_SPREAD_FACTOR;
    const shift = { ms: Number.MAX_SAFE_INTEGER, now, dueAfter };
    steps.push({ after: 0, move: (tx, after) => tx.queue.makeEarlier(shift, after, BATCH_SIZE) });
  }

  return {
    /** Makes mail due that waits for a source address until one of the times; the next `run` begins with it. */
    release: (ends: readonly number[]): void => {
      const now = clock.now();
      const times = JSON.stringify(ends);
      steps.push({ after: 0, move: (tx, after) => tx.queue.releaseDueAt({ times, now }, after, BATCH_SIZE) });
    },
    /** Corrects the times after a jump. Call about once per second; the next call retries a step that failed. */
    run: async (): Promise<void> => {
      if (!started) planStart();
      started = true;
      const jump = expiry.stepSinceLastCall();
      if (jump !== 0) plan(jump);
      while (!isStopping()) {
        const [step] = steps;
        if (step === undefined) return;
        const next = await writer.run((tx) => {
          const last = step.move(tx, step.after);
          if (last === null) step.complete?.();
          return last;
        });
        if (next === null) steps.shift();
        else step.after = next;
      }
    },
  };
}

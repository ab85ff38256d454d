import type { Config } from '../config/schema.ts';
import { type Clock, DAY, SECOND } from '../core/clock.ts';
import type { Log } from '../core/log.ts';
import type { Writer } from '../store/database/writer.ts';
import type { Tables } from '../store/tables.ts';

/**
 * Detects that the system clock was set: the wall clock and the monotonic clock then do not advance together. Slewing by
 * a time daemon is too slow to be detected. A machine that was suspended appears as one whose clock was set forward.
 */
export interface ClockWatch {
  /** Milliseconds (an integer) by which the clock was set since the last call; negative: back; 0: it was not set. */
  jumpSinceLastCall(): number;
}

const MIN_JUMP_MS = 5 * SECOND;

/**
 * `clock`: the system clock. The first call measures from the creation. A difference below 5 s counts as 0 and is then
 * forgotten, so that slewing never adds up to a jump.
 */
export function createClockWatch(clock: Clock, monotonic: Clock): ClockWatch {
  let offset = clock.now() - monotonic.now();
  return {
    jumpSinceLastCall: () => {
      const now = clock.now() - monotonic.now();
      // The monotonic clock has fractions of a millisecond; due times are integers.
      const jump = Math.round(now - offset);
      offset = now;
      return Math.abs(jump) < MIN_JUMP_MS ? 0 : jump;
    },
  };
}

/**
 * Moves the times in the queue when the clock is set: they are dates, but represent durations ("try again in five
 * minutes", "expires in two days"). Set back: the remaining wait of deferred messages does not change. Set forward:
 * messages that came due are sent, which does no harm, and none expires because of it. The date for which a sender
 * scheduled a message does not change.
 */
export interface QueueRebase {
  /** Corrects the times after a jump. Call about once per second; the next call retries a step that failed. */
  run(): Promise<void>;
}

export interface QueueRebaseDeps {
  clock: Clock;
  watch: ClockWatch;
  retry: Pick<Config['delivery']['retry'], 'max'>;
  writer: Writer;
  log: Log;
  /** Ends a run after the step in progress. */
  isStopping(): boolean;
}

const BATCH_SIZE = 500;
/** The longest wait, as a multiple of the configured one: each wait is spread by up to 10 %. */
const MAX_SPREAD_FACTOR = 1.1;

interface Step {
  after: number;
  /** Moves the next messages after a seq and returns the last one's; null: there are no more. */
  move(tables: Tables, after: number): number | null;
}

/**
 * Units of work move 500 messages each; the steps that remain are in memory only. The first `run` also shortens waits
 * that are longer than the schedule or a reply allows: a clock that was ahead before the start caused them.
 */
export function createQueueRebase(deps: QueueRebaseDeps): QueueRebase {
  const { clock, watch, retry, writer, log, isStopping } = deps;
  const steps: Step[] = [];
  let started = false;

  function plan(jump: number): void {
    log.warn(
      { seconds: Math.round(jump / SECOND) },
      'system clock was set; moving due times and expiry of waiting mail',
    );
    if (jump < 0) {
      const shift = { ms: -jump, now: clock.now(), dueAfter: clock.now() };
      steps.push({ after: 0, move: (all, after) => all.queue.makeEarlier(shift, after, BATCH_SIZE) });
    }
    steps.push({
      after: 0,
      move: (all, after) => all.queue.moveExpiry(jump, after, BATCH_SIZE),
    });
  }

  /** Shortens waits that are longer than the maximum: they were written before this start, while the clock was ahead. */
  function planStart(): void {
    const now = clock.now();
    // A reply may name a wait of up to a day.
    const dueAfter = now + Math.max(retry.max, DAY) * MAX_SPREAD_FACTOR;
    const shift = { ms: Number.MAX_SAFE_INTEGER, now, dueAfter };
    steps.push({ after: 0, move: (all, after) => all.queue.makeEarlier(shift, after, BATCH_SIZE) });
  }

  return {
    run: async () => {
      if (!started) planStart();
      started = true;
      const jump = watch.jumpSinceLastCall();
      if (jump !== 0) plan(jump);
      while (!isStopping()) {
        const [step] = steps;
        if (step === undefined) return;
        const next = await writer.run((all) => step.move(all, step.after));
        if (next === null) steps.shift();
        else step.after = next;
      }
    },
  };
}

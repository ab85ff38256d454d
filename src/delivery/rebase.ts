import type { Config } from '../config/schema.ts';
import { type Clock, DAY, SECOND } from '../core/clock.ts';
import type { Log } from '../core/log.ts';
import type { Tables } from '../store/tables.ts';
import type { Writer } from '../store/writer.ts';
import type { ClockWatch } from './clock-watch.ts';

/**
 * Times in the queue are dates, but mean durations: "again in five minutes", "given up in two days". When the
 * clock is set they are moved with it. Set back: deferred messages keep the wait they had left. Set forward: what
 * came due is sent, which does no harm, but nothing expires for it. Mail that its sender scheduled for a date stays
 * with that date.
 */
export interface Rebasing {
  /** Moves what a jump of the clock made wrong. Call every second or so; what fails is tried again at the next call. */
  run(): Promise<void>;
}

export interface RebasingDeps {
  clock: Clock;
  watch: ClockWatch;
  retry: Pick<Config['delivery']['retry'], 'max' | 'expireMarketing'>;
  writer: Writer;
  log: Log;
}

const AT_ONCE = 500;
/** A reply may name a wait of a day, and every wait is spread by a tenth. */
const SPREAD = 1.1;

interface Step {
  after: number;
  /** Moves the next messages; null: there are no more. */
  move(tables: Tables, after: number): number | null;
}

export function createRebasing({ clock, watch, retry, writer, log }: RebasingDeps): Rebasing {
  const steps: Step[] = [];
  const scheduledLife = retry.expireMarketing;
  let started = false;

  function plan(jump: number): void {
    log.warn(
      { seconds: Math.round(jump / SECOND) },
      'the system clock was set; due times and expiry of waiting mail are moved with it',
    );
    if (jump < 0) {
      const shift = { ms: -jump, now: clock.now(), dueAfter: clock.now(), scheduledLife };
      steps.push({ after: 0, move: (all, after) => all.queue.makeEarlier(shift, after, AT_ONCE) });
    }
    steps.push({
      after: 0,
      move: (all, after) => all.queue.moveExpiry({ ms: jump, scheduledLife }, after, AT_ONCE),
    });
  }

  /** No wait is longer than this: what seems to be was written while the clock was ahead, before this start. */
  function planStart(): void {
    const now = clock.now();
    const dueAfter = now + Math.max(retry.max, DAY) * SPREAD;
    const shift = { ms: Number.MAX_SAFE_INTEGER, now, dueAfter, scheduledLife };
    steps.push({ after: 0, move: (all, after) => all.queue.makeEarlier(shift, after, AT_ONCE) });
  }

  return {
    run: async () => {
      if (!started) planStart();
      started = true;
      const jump = watch.jumped();
      if (jump !== 0) plan(jump);
      for (;;) {
        const [step] = steps;
        if (step === undefined) return;
        const next = await writer.run((all) => step.move(all, step.after));
        if (next === null) steps.shift();
        else step.after = next;
      }
    },
  };
}

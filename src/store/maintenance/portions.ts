import { setTimeout as sleep } from 'node:timers/promises';
import type { Writer } from '../database/writer.ts';
import type { Tables } from '../tables.ts';

export interface Portion {
  /** Rows that were read or changed. */
  rows: number;
  isDone: boolean;
}

/** `isOver`: whether the time of the portion is over; a step whose rows differ in size checks it after each row. */
export type PortionStep<P extends Portion> = (tables: Tables, rows: number, isOver: () => boolean) => P;

export interface PortionsOptions {
  writer: Writer;
  /** The name of this work among the shares of the writer, see `Writer.run`. */
  share: string;
  /** Monotonic milliseconds. */
  now?(): number;
  pause?(ms: number, signal: AbortSignal): Promise<void>;
}

/** How long a portion may block the event loop; a single row may take longer. */
const PORTION_MS = 2;
const FIRST_ROWS = 1;
const MAX_ROWS = 1000;
/** Length of a pause relative to the time from a portion's request until it is on disk. */
const PAUSE_FACTOR = 1;
const MIN_PAUSE_MS = 2;
const MAX_PAUSE_MS = 1000;

/**
 * Long work on the database in portions. Each portion is one unit of work, so that it delays other units and the event loop
 * by a few milliseconds only. The number of rows in a portion is derived from the times of the last portions. Each portion
 * is followed by a pause at least as long as the time from its request until it was on disk: where the disk is slow or
 * many units wait, the work slows down with them.
 *
 * Each `run` begins with one row and learns how many fit into 2 ms, at most 1000. `stop` is final: later runs resolve
 * with false. Pauses keep the process running, since a command awaits its work.
 */
export function createPortions(options: PortionsOptions) {
  const { writer, share, now = () => performance.now(), pause = pauseFor } = options;
  const stopping = new AbortController();

  return {
    /**
     * Runs `step` until it reports that it is done; resolves with false when it was stopped before. The work of a step must
     * grow with its number of rows. `onDone` is called when a portion is on disk.
     */
    run: async <P extends Portion>(
      step: PortionStep<P>,
      onDone?: (portion: P, durationMs: number) => void,
    ): Promise<boolean> => {
      let rows = FIRST_ROWS;
      let rowMs = 0;
      while (!stopping.signal.aborted) {
        const requested = now();
        const { portion, took } = await writer.run((tables) => {
          const began = now();
          const done = step(tables, rows, () => now() - began >= PORTION_MS);
          return { portion: done, took: now() - began };
        }, share);
        onDone?.(portion, took);
        if (portion.isDone) return true;
        rowMs = smoothed(rowMs, took / Math.max(1, portion.rows));
        // The time of a portion that ended early is no estimate for a full one.
        const limit = portion.rows < rows ? rows : 2 * rows;
        rows = Math.round(Math.min(MAX_ROWS, limit, Math.max(1, rows / 4, PORTION_MS / rowMs)));
        let waitMs = Math.max(MIN_PAUSE_MS, PAUSE_FACTOR * (now() - requested));
        do {
          waitMs = Math.min(waitMs, MAX_PAUSE_MS);
          await pause(waitMs, stopping.signal);
          waitMs *= 2;
          // Sends have precedence for a limited time: work that never ran would let the database grow.
        } while (writer.isCrowded() && waitMs <= MAX_PAUSE_MS);
      }
      return false;
    },
    /** Ends pauses; no further portion begins. */
    stop: (): void => stopping.abort(),
  };
}

export type Portions = ReturnType<typeof createPortions>;

/**
 * The estimated time of a row in ms. It rises immediately, as rows that must be read from the disk follow each other, and
 * falls gradually.
 */
function smoothed(before: number, measured: number): number {
  return measured >= before ? measured : 0.8 * before + 0.2 * measured;
}

async function pauseFor(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(ms, undefined, { signal });
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

import type { Context } from '../context.ts';
import { createPortions, type Portion, type PortionStep } from '../maintenance/portions.ts';
import type { Tables } from '../tables.ts';

/**
 * Changes of existing rows that a migration leaves to the daemon, such as filling a new column. Steps run one after the
 * other, each in portions (portions.ts) until a portion finds nothing to change. A step determines from the rows what is
 * left, so that it continues after a restart; until it is complete the program must work with both states.
 */
export interface BackgroundStep {
  /** Label of metrics: `contact-search`. */
  name: string;
  /** Log message: `contacts added to the search index`. */
  description: string;
  /**
   * Runs one portion: changes at most `rows` rows, and ends early when `isOver`, which it calls after each row, returns
   * true. Returns how many rows it changed; 0: the step is complete.
   */
  run(tables: Tables, rows: number, isOver: () => boolean): number;
}

const LOG_INTERVAL_MS = 30_000;

/**
 * Starts nothing; `start` runs the steps once, in their order. A step that throws is logged and counted, and the next
 * one follows. Progress is logged every 30 s.
 */
export function createBackgroundSteps(
  { writer, log }: Pick<Context, 'writer' | 'log'>,
  steps: readonly BackgroundStep[],
  {
    observe,
    now = () => performance.now(),
    pause,
  }: {
    /** Called after each portion with the rows that it changed, for metrics. */
    observe?(step: string, rows: number): void;
    /** Default: real time. */
    now?(): number;
    pause?(ms: number, signal: AbortSignal): Promise<void>;
  } = {},
) {
  const portions = createPortions({
    writer,
    share: 'background steps',
    now,
    ...(pause === undefined ? {} : { pause }),
  });
  const pending = new Set(steps);
  let failures = 0;
  let running: Promise<void> = Promise.resolve();

  async function runStep(step: BackgroundStep): Promise<void> {
    const { name, description } = step;
    const began = now();
    let loggedAt = began;
    let rows = 0;
    const fields = () => {
      const seconds = (now() - began) / 1000;
      return { step: name, rows, seconds: Math.round(seconds), perSecond: Math.round(rows / seconds) };
    };
    const isComplete = await portions.run(portionOf(step), (portion) => {
      rows += portion.rows;
      if (portion.rows > 0) observe?.(name, portion.rows);
      if (now() - loggedAt < LOG_INTERVAL_MS) return;
      loggedAt = now();
      log.info(fields(), 'background step continues');
    });
    if (!isComplete) return;
    pending.delete(step);
    if (rows > 0) log.info(fields(), description);
  }

  async function runAll(): Promise<void> {
    for (const step of steps) {
      try {
        await runStep(step);
      } catch (error) {
        failures++;
        log.error({ err: error, step: step.name }, 'background step failed; the next start continues it');
      }
    }
  }

  return {
    start: (): void => {
      running = runAll();
    },
    /** Number of steps that are not known to be complete. */
    pending: (): number => pending.size,
    /** Number of steps that failed since the start; the next start continues them. */
    failed: (): number => failures,
    /** Resolves when the portion in progress has ended; no further one begins. */
    stop: async (): Promise<void> => {
      portions.stop();
      await running;
    },
  };
}

export type BackgroundSteps = ReturnType<typeof createBackgroundSteps>;

function portionOf({ run }: BackgroundStep): PortionStep<Portion> {
  return (tables, rows, isOver) => {
    const changed = run(tables, rows, isOver);
    return { rows: changed, isDone: changed === 0 };
  };
}

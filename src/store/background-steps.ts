import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../core/log.ts';
import type { Tables } from './tables.ts';
import type { Writer } from './writer.ts';

/**
 * Work on existing rows that a migration leaves to the daemon, such as filling a new column. Each step runs in small
 * units of work with pauses as long as the units, one step after the other, until a unit finds nothing to do. A step
 * finds out from the rows themselves what is left, so that it continues after a restart; until it is complete the
 * program must work with both states.
 */
export interface BackgroundStep {
  /** `contact-search`; label of metrics. */
  name: string;
  /** For the log: `contacts added to the search index`. */
  description: string;
  /** One unit of work, of some 20 ms. Returns how many rows it changed; 0: the step is complete. */
  run(tables: Tables): number;
}

export interface BackgroundSteps {
  start(): void;
  /** Resolves after the unit under way. */
  stop(): Promise<void>;
}

export interface BackgroundStepDeps {
  steps: readonly BackgroundStep[];
  writer: Writer;
  log: Log;
  /** Rows that a step has changed since the start, for metrics. */
  observe?(step: string, rows: number): void;
  /** Default: real time. */
  now?(): number;
  pause?(ms: number): Promise<unknown>;
}

const LOG_INTERVAL_MS = 30_000;

export function createBackgroundSteps(deps: BackgroundStepDeps): BackgroundSteps {
  const { steps, writer, log, observe, now = () => performance.now(), pause = sleep } = deps;
  const stopping = new AbortController();
  let running: Promise<void> = Promise.resolve();

  async function runStep({ name, description, run }: BackgroundStep): Promise<void> {
    const began = now();
    let loggedAt = began;
    let rows = 0;
    const fields = () => {
      const seconds = (now() - began) / 1000;
      return { step: name, rows, seconds: Math.round(seconds), perSecond: Math.round(rows / seconds) };
    };
    while (!stopping.signal.aborted) {
      const unitBegan = now();
      const changed = await writer.run(run);
      if (changed === 0) {
        if (rows > 0) log.info(fields(), description);
        return;
      }
      rows += changed;
      observe?.(name, changed);
      if (now() - loggedAt >= LOG_INTERVAL_MS) {
        loggedAt = now();
        log.info(fields(), 'background step continues');
      }
      await pause(now() - unitBegan);
    }
  }

  async function runAll(): Promise<void> {
    for (const step of steps) {
      try {
        await runStep(step);
      } catch (error) {
        log.error({ err: error, step: step.name }, 'background step failed; the next start continues it');
      }
    }
  }

  return {
    start: () => {
      running = runAll();
    },
    stop: async () => {
      stopping.abort();
      await running;
    },
  };
}

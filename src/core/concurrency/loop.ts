import type { Log } from '../log.ts';

export interface LoopOptions {
  /** Identifies the loop in log records and metrics, for example `webhook-deliveries`. */
  name: string;
  /**
   * One run of the periodic work. Resolves with the pause until the next run in ms; undefined: `intervalMs`. If it
   * throws, the error is logged and the next run follows after `retryMs`.
   */
  run: () => Promise<number | void> | number | void;
  /** Pause between the end of a run and the start of the next one, ms. */
  intervalMs: number;
  log: Log;
  /** Pause before the first run, ms. Default: 0, the first run begins within `start`. */
  firstMs?: number;
  /** Pause after a failed run, ms. Default: `intervalMs`. */
  retryMs?: number;
  /** Adds up to this share of each pause, so that loops of many daemons do not run in step. Default: 0. */
  jitter?: number;
  /** A number in [0, 1). Default: `Math.random`; jitter needs no unpredictable numbers. */
  random?: () => number;
  /** Keeps the process running while the loop waits. Default: false. */
  ref?: boolean;
  /** Called after each run with its duration in ms. */
  observe?: (name: string, durationMs: number, failed: boolean) => void;
}

/**
 * Periodic work in the background: at most one run at a time.
 *
 * Creates a loop; `start` starts it. An error that repeats is logged once until a run succeeds.
 */
export function createLoop(options: LoopOptions) {
  const { name, run, intervalMs, log, firstMs = 0, retryMs = intervalMs, jitter = 0, ref = false } = options;
  const random = options.random ?? Math.random;
  let state: 'new' | 'started' | 'stopped' = 'new';
  let timer: NodeJS.Timeout | null = null;
  let running: Promise<void> | null = null;
  let woken = false;
  let lastError: string | null = null;

  function schedule(pauseMs: number): void {
    if (state !== 'started') return;
    timer = setTimeout(begin, pauseMs * (1 + jitter * random()));
    if (!ref) timer.unref();
  }

  function begin(): void {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    woken = false;
    running = runOnce().then((pauseMs) => {
      running = null;
      schedule(woken ? 0 : pauseMs);
    });
  }

  async function runOnce(): Promise<number> {
    const started = performance.now();
    let failed = false;
    try {
      const pauseMs = await run();
      if (lastError !== null) log.info({ loop: name }, 'background work succeeds again');
      lastError = null;
      return pauseMs ?? intervalMs;
    } catch (error) {
      failed = true;
      const message = String(error);
      if (message !== lastError)
        log.error({ err: error, loop: name }, 'background work failed; trying again later');
      lastError = message;
      return retryMs;
    } finally {
      options.observe?.(name, performance.now() - started, failed);
    }
  }

  return {
    start: (): void => {
      if (state !== 'new') return;
      state = 'started';
      if (firstMs === 0) begin();
      else schedule(firstMs);
    },
    /** Runs now, or again when the run in progress has ended. No effect before `start` and after `stop`. */
    wake: (): void => {
      if (state !== 'started') return;
      if (running === null) begin();
      else woken = true;
    },
    /** Starts no further run; resolves when the run in progress has ended. */
    stop: async (): Promise<void> => {
      state = 'stopped';
      if (timer !== null) clearTimeout(timer);
      timer = null;
      await running;
    },
  };
}

import { createFairQueue } from '../core/concurrency/fair-queue.ts';

/**
 * Shares the event loop among SMTP clients: a bounded number of commands runs in one iteration, those that wait run
 * network by network, and while some wait there is a pause between iterations. However many connections send commands,
 * everything else in the process waits for one batch at most, and has most of the CPU time.
 */
export interface CommandQueue {
  /** Runs the job now or in a later batch. A connection has one job at a time, which bounds the queue. */
  run(network: string, job: () => void): void;
  waiting(): number;
}

/** About a millisecond. */
const COMMANDS_PER_BATCH = 50;
/** Pause between batches while commands wait: at most 12,500 commands per second. */
const PAUSE_MS = 4;

/**
 * Empty at first. A batch runs at most 50 commands by default; the next one follows in the next turn of the event loop,
 * or 4 ms later while commands wait. Jobs must not throw.
 */
export function createCommandQueue(
  options: { batchSize?: number; defer?: (callback: () => void, hasBacklog: boolean) => void } = {},
): CommandQueue {
  const { batchSize = COMMANDS_PER_BATCH, defer = deferBatch } = options;
  const waiting = createFairQueue<() => void>();
  let used = 0;
  let isScheduled = false;

  function schedule(): void {
    if (isScheduled) return;
    isScheduled = true;
    defer(runBatch, waiting.size > 0);
  }

  function runBatch(): void {
    isScheduled = false;
    used = 0;
    while (used < batchSize) {
      const next = waiting.take();
      if (next === undefined) return;
      used++;
      next.item();
    }
    if (waiting.size > 0) schedule();
  }

  return {
    run: (network, job) => {
      schedule();
      if (used < batchSize && waiting.size === 0) {
        used++;
        job();
        return;
      }
      waiting.push(network, job);
    },
    waiting: () => waiting.size,
  };
}

function deferBatch(callback: () => void, hasBacklog: boolean): void {
  if (hasBacklog) setTimeout(callback, PAUSE_MS).unref();
  else setImmediate(callback);
}

import { parentPort, workerData } from 'node:worker_threads';
import { LOWEST_PRIORITY, lowerPriority } from '../../core/thread-priority.ts';
import type { Task, TaskMessage, TaskProgress, TaskResult, ThreadData } from './copy.ts';

/* What the threads of copy.ts have in common: one task at a time, progress, a limited rate, stopping. */

const REPORT_INTERVAL_MS = 100;

class Stopped extends Error {}

/** Runs the tasks that arrive as messages; each is answered with its result, `stopped` or `failed`. */
export function serveTasks(run: (task: Task) => Promise<TaskResult> | TaskResult): void {
  const port = parentPort;
  if (port === null) throw new Error('this program runs as a worker thread only');
  lowerPriority(LOWEST_PRIORITY);
  port.on('message', (task: Task) => {
    void answerOf(task, run).then((message) => port.postMessage(message));
  });
}

async function answerOf(
  task: Task,
  run: (task: Task) => Promise<TaskResult> | TaskResult,
): Promise<TaskMessage> {
  try {
    return await run(task);
  } catch (error) {
    if (error instanceof Stopped) return { kind: 'stopped' };
    const code = error instanceof Error && 'code' in error ? String(error.code) : undefined;
    return { kind: 'failed', message: error instanceof Error ? error.message : String(error), code };
  }
}

/**
 * Returns the function that a task calls after each step: it reports progress, waits as long as the rate requires unless
 * `isThrottled` is false, and throws when the task is stopped.
 */
export function createThrottle(): (progress: TaskProgress, isThrottled?: boolean) => void {
  const { bytesPerSecond, stop }: ThreadData = workerData;
  const began = performance.now();
  let reported = began;
  return (progress, isThrottled = true) => {
    const now = performance.now();
    if (now - reported >= REPORT_INTERVAL_MS) {
      reported = now;
      parentPort?.postMessage({ kind: 'progress', progress } satisfies TaskMessage);
    }
    const aheadMs = (1000 * progress.done) / bytesPerSecond - (now - began);
    if (aheadMs > 0 && isThrottled) Atomics.wait(stop, 0, 0, aheadMs);
    if (Atomics.load(stop, 0) !== 0) throw new Stopped();
  };
}

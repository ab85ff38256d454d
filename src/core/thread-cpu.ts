import { openSync, readSync } from 'node:fs';

/**
 * CPU time of the main thread in ms. Unlike `process.cpuUsage`, it does not include the other threads, and its cost does
 * not grow with their number. Null where the system does not count it (Linux: CONFIG_SCHED_INFO).
 */
export const threadCpuMs: (() => number) | null = openStatistics();

function openStatistics(): (() => number) | null {
  const buffer = Buffer.alloc(64);
  try {
    // https://docs.kernel.org/scheduler/sched-stats.html: nanoseconds on a CPU, nanoseconds waiting, time slices.
    const file = openSync(`/proc/self/task/${process.pid}/schedstat`, 'r');
    const read = () => {
      const length = readSync(file, buffer, 0, buffer.length, 0);
      return Number.parseInt(buffer.toString('latin1', 0, length), 10) / 1e6;
    };
    return read() > 0 ? read : null;
  } catch {
    // Another system, or a process that may not read its own statistics: the caller uses the clock.
    return null;
  }
}

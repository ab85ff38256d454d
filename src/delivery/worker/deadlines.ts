import type { Clock } from '../../core/clock.ts';

/**
 * One coarse timer for all connections of a worker. Starting or ending a wait is an assignment to `dueAt`, not
 * a timer made and cleared: at thousands of messages a second that difference is felt.
 */
export interface Watched {
  /** On the deadlines' clock; `Infinity` = not waiting. */
  dueAt: number;
  /** Called once the time has come; `dueAt` is `Infinity` again by then. */
  expire(): void;
}

export interface Deadlines {
  now(): number;
  watch(watched: Watched): void;
  forget(watched: Watched): void;
  close(): void;
}

/** `clock` must be monotonic: a step of the wall clock is no reason to hang up. */
export function createDeadlines(clock: Clock, tickMs: number): Deadlines {
  const all = new Set<Watched>();
  const timer = setInterval(() => {
    const now = clock.now();
    for (const watched of all) {
      if (watched.dueAt > now) continue;
      watched.dueAt = Number.POSITIVE_INFINITY;
      watched.expire();
    }
  }, tickMs);
  timer.unref();
  return {
    now: () => clock.now(),
    watch: (watched) => void all.add(watched),
    forget: (watched) => void all.delete(watched),
    close: () => clearInterval(timer),
  };
}

/**
 * Limits concurrent work: in total and per key (for example, a domain), so that slow work of one key does not delay
 * other keys. Waiting work starts in order of arrival, as far as the limit of its key allows.
 */
export interface Gate {
  /**
   * Runs `work` when the limits allow it. Resolves with null, without running it, if `maxWaiting` is reached, or after
   * `close`.
   */
  run<T>(key: string, work: () => Promise<T>): Promise<T | null>;
  /** Waiting work resolves with null; running work continues. */
  close(): void;
}

export interface GateOptions {
  concurrency: number;
  perKey: number;
  maxWaiting: number;
}

interface Waiting {
  key: string;
  start(): void;
  abandon(): void;
}

/**
 * Begins open and empty. Has no timers: work waits without a limit of time. `perKey`: how many works of one key may run
 * at the same time. Each number may be infinite.
 */
export function createGate({ concurrency, perKey, maxWaiting }: GateOptions): Gate {
  const waiting = new Set<Waiting>();
  const running = new Map<string, number>();
  let total = 0;
  let closed = false;

  const hasCapacity = (key: string) => total < concurrency && (running.get(key) ?? 0) < perKey;

  function reserve(key: string): void {
    total++;
    running.set(key, (running.get(key) ?? 0) + 1);
  }

  function release(key: string): void {
    total--;
    const remaining = (running.get(key) ?? 1) - 1;
    if (remaining > 0) running.set(key, remaining);
    else running.delete(key);
    for (const next of waiting) {
      if (total >= concurrency) return;
      if (!hasCapacity(next.key)) continue;
      waiting.delete(next);
      reserve(next.key);
      next.start();
    }
  }

  /** Resolves with whether the work may run. */
  function admit(key: string): Promise<boolean> | boolean {
    if (closed) return false;
    if (hasCapacity(key)) {
      reserve(key);
      return true;
    }
    if (waiting.size >= maxWaiting) return false;
    return new Promise((resolve) => {
      waiting.add({ key, start: () => resolve(true), abandon: () => resolve(false) });
    });
  }

  return {
    run: async (key, work) => {
      if (!(await admit(key))) return null;
      try {
        return await work();
      } finally {
        release(key);
      }
    },
    close: () => {
      closed = true;
      for (const each of waiting) each.abandon();
      waiting.clear();
    },
  };
}

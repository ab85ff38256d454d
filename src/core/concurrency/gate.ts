export interface GateOptions {
  concurrency: number;
  perKey: number;
  maxWaiting: number;
  /** Waiting work of one key. Default: `maxWaiting`. */
  maxWaitingPerKey?: number;
}

interface Waiting {
  start(): void;
  abandon(): void;
}

/**
 * Limits concurrent work: in total and per key (for example, a domain), so that slow work of one key does not delay
 * other keys. Of the keys with waiting work, the one with the least running work is next; the work of a key starts in order
 * of arrival.
 *
 * Begins open and empty. Has no timers: work waits without a limit of time. `perKey`: how many works of one key may run
 * at the same time. Each number may be infinite.
 */
export function createGate(options: GateOptions) {
  const { concurrency, perKey, maxWaiting, maxWaitingPerKey = maxWaiting } = options;
  /** By key, without empty lists. The key that was served last is at the end. */
  const waiting = new Map<string, Waiting[]>();
  let waitingCount = 0;
  const running = new Map<string, number>();
  let total = 0;
  let closed = false;

  const runningOf = (key: string) => running.get(key) ?? 0;
  const hasCapacity = (key: string) => total < concurrency && runningOf(key) < perKey;

  function reserve(key: string): void {
    total++;
    running.set(key, runningOf(key) + 1);
  }

  function release(key: string): void {
    total--;
    const remaining = runningOf(key) - 1;
    if (remaining > 0) running.set(key, remaining);
    else running.delete(key);
    for (let next = nextKey(); next !== null; next = nextKey()) startFirst(next);
  }

  /** The key whose waiting work is next; null: there is none, or the limits do not allow it. */
  function nextKey(): string | null {
    let least: string | null = null;
    for (const key of waiting.keys())
      if (hasCapacity(key) && (least === null || runningOf(key) < runningOf(least))) least = key;
    return least;
  }

  function startFirst(key: string): void {
    const list = waiting.get(key) ?? [];
    const first = list.shift();
    waiting.delete(key);
    if (list.length > 0) waiting.set(key, list);
    if (first === undefined) return;
    waitingCount--;
    reserve(key);
    first.start();
  }

  /** Resolves with whether the work may run. */
  function admit(key: string): Promise<boolean> | boolean {
    if (closed) return false;
    if (hasCapacity(key)) {
      reserve(key);
      return true;
    }
    const list = waiting.get(key) ?? [];
    if (waitingCount >= maxWaiting || list.length >= maxWaitingPerKey) return false;
    waiting.set(key, list);
    waitingCount++;
    return new Promise((resolve) => {
      list.push({ start: () => resolve(true), abandon: () => resolve(false) });
    });
  }

  return {
    /**
     * Runs `work` when the limits allow it. Resolves with null, without running it, if too much work is waiting, or after
     * `close`.
     */
    run: async <T>(key: string, work: () => Promise<T>): Promise<T | null> => {
      if (!(await admit(key))) return null;
      try {
        return await work();
      } finally {
        release(key);
      }
    },
    /** Waiting work resolves with null; running work continues. */
    close: (): void => {
      closed = true;
      for (const list of waiting.values()) for (const each of list) each.abandon();
      waiting.clear();
      waitingCount = 0;
    },
  };
}

export type Gate = ReturnType<typeof createGate>;

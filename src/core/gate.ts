/**
 * Bounds how much work runs at a time: in all, and for each key (a domain, say), so that one that is slow holds up
 * nobody but itself. What has to wait runs in the order in which it came, as far as its key allows.
 */
export interface Gate {
  /** Runs `work` when there is room; null, without running it, when too much waits already or after `close`. */
  run<T>(key: string, work: () => Promise<T>): Promise<T | null>;
  /** Gives up what waits; what runs goes on. */
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
  giveUp(): void;
}

export function createGate({ concurrency, perKey, maxWaiting }: GateOptions): Gate {
  const waiting = new Set<Waiting>();
  const running = new Map<string, number>();
  let total = 0;
  let closed = false;

  const hasRoom = (key: string) => total < concurrency && (running.get(key) ?? 0) < perKey;

  function take(key: string): void {
    total++;
    running.set(key, (running.get(key) ?? 0) + 1);
  }

  function release(key: string): void {
    total--;
    const left = (running.get(key) ?? 1) - 1;
    if (left > 0) running.set(key, left);
    else running.delete(key);
    for (const next of waiting) {
      if (total >= concurrency) return;
      if (!hasRoom(next.key)) continue;
      waiting.delete(next);
      take(next.key);
      next.start();
    }
  }

  /** Resolves to whether the work may run. */
  function enter(key: string): Promise<boolean> | boolean {
    if (closed) return false;
    if (hasRoom(key)) {
      take(key);
      return true;
    }
    if (waiting.size >= maxWaiting) return false;
    return new Promise((resolve) => {
      waiting.add({ key, start: () => resolve(true), giveUp: () => resolve(false) });
    });
  }

  return {
    run: async (key, work) => {
      if (!(await enter(key))) return null;
      try {
        return await work();
      } finally {
        release(key);
      }
    },
    close: () => {
      closed = true;
      for (const each of waiting) each.giveUp();
      waiting.clear();
    },
  };
}

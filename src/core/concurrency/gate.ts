import { createFairQueue } from './fair-queue.ts';
import { createTally } from './tally.ts';

export interface LimitOptions {
  /** Work that runs at the same time: the sum of its sizes. Larger work runs alone. */
  concurrency: number;
  /**
   * That of one key. A function of what is free: a share that shrinks while other keys have work. Default: no limit of its
   * own.
   */
  perKey?: number | ((free: number) => number);
  /** Which key is next: the one with the least running work, the default, or the one whose turn it is. */
  order?: 'least' | 'turns';
}

interface Waiting {
  size: number;
  isRunning: boolean;
  start: (() => void) | null;
}

/**
 * Limits concurrent work: in total and per key (for example, a domain), so that slow work of one key does not delay
 * other keys. The work of a key starts in order of arrival. Work that is next waits until it fits: smaller work does not
 * overtake it.
 *
 * Begins empty. Has no timers and no bounds: work waits without a limit of time or number (see `createGate`).
 */
export function createFairLimit({ concurrency, perKey = concurrency, order = 'least' }: LimitOptions) {
  const waiting = createFairQueue<Waiting>();
  const running = createTally();

  const perKeyNow = () => (typeof perKey === 'number' ? perKey : perKey(concurrency - running.total));

  function startNext(): void {
    while (waiting.size > 0 && running.total < concurrency) {
      const limit = perKeyNow();
      const key = waiting.next((each) => {
        const own = running.of(each);
        return own >= limit ? null : order === 'turns' ? 0 : own;
      });
      const first = key === undefined ? undefined : waiting.first(key);
      if (key === undefined || first === undefined) return;
      if (running.total > 0 && running.total + first.size > concurrency) return;
      waiting.takeOf(key);
      running.add(key, first.size);
      first.isRunning = true;
      first.start?.();
    }
  }

  function add(key: string, size: number): Waiting {
    const entry: Waiting = { size, isRunning: false, start: null };
    waiting.push(key, entry);
    startNext();
    return entry;
  }

  function end(key: string, entry: Waiting): void {
    if (entry.isRunning) running.add(key, -entry.size);
    else waiting.remove(key, entry);
    startNext();
  }

  return {
    /**
     * Calls `start`, never before it returns, when the limits allow it. Returns a function that ends the work, or removes
     * it when it has not begun; call it once.
     */
    enter: (key: string, start: () => void, size = 1): (() => void) => {
      const entry = add(key, size);
      if (entry.isRunning) queueMicrotask(start);
      else entry.start = start;
      return () => end(key, entry);
    },
    /** Runs `work` when the limits allow it: before it returns if they do so now. */
    run: async <T>(key: string, work: () => Promise<T>, size = 1): Promise<T> => {
      const entry = add(key, size);
      if (!entry.isRunning)
        await new Promise<void>((start) => {
          entry.start = start;
        });
      try {
        return await work();
      } finally {
        end(key, entry);
      }
    },
    /** Number of works that wait, in total or of one key. */
    waiting: (key?: string): number => (key === undefined ? waiting.size : waiting.countOf(key)),
  };
}

export interface GateOptions extends LimitOptions {
  maxWaiting: number;
  /** Waiting work of one key. Default: `maxWaiting`. */
  maxWaitingPerKey?: number;
}

/** A fair limit with bounds on the work that waits. Each number may be infinite. */
export function createGate({ maxWaiting, maxWaitingPerKey = maxWaiting, ...options }: GateOptions) {
  const limit = createFairLimit(options);
  let closed = false;

  /** Like `enter` of the limit; null, and nothing happens, when too much work is waiting. */
  function enter(key: string, start: () => void): (() => void) | null {
    const before = limit.waiting();
    const leave = limit.enter(key, start);
    const hasToWait = limit.waiting() > before;
    if (!hasToWait || (before < maxWaiting && limit.waiting(key) <= maxWaitingPerKey)) return leave;
    leave();
    return null;
  }

  return {
    enter,
    /**
     * Runs `work` when the limits allow it. Resolves with null, without running it, if too much work is waiting, or after
     * `close`.
     */
    run: async <T>(key: string, work: () => Promise<T>): Promise<T | null> => {
      let begin = () => {};
      const begun = new Promise<void>((resolve) => {
        begin = resolve;
      });
      const leave = closed ? null : enter(key, begin);
      if (leave === null) return null;
      try {
        await begun;
        return closed ? null : await work();
      } finally {
        leave();
      }
    },
    /** No further work begins: what waits resolves with null when its turn comes. */
    close: (): void => {
      closed = true;
    },
  };
}

export type Gate = ReturnType<typeof createGate>;

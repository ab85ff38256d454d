import type { ServerResponse } from 'node:http';

/**
 * Signals for handlers that wait: aborted when the caller hangs up before it is answered, or when the daemon
 * stops. Most calls never ask for theirs, so one is made only when it is asked for.
 */
export interface CallSignals {
  of(res: ServerResponse): AbortSignal;
  /** Aborts all that there are and all that will be. */
  stop(): void;
}

export function createCallSignals(): CallSignals {
  const live = new Set<AbortController>();
  let stopped = false;
  return {
    of: (res) => {
      const controller = new AbortController();
      if (stopped || res.closed) {
        controller.abort();
        return controller.signal;
      }
      live.add(controller);
      res.once('close', () => {
        live.delete(controller);
        if (!res.writableFinished) controller.abort();
      });
      return controller.signal;
    },
    stop: () => {
      stopped = true;
      for (const controller of live) controller.abort();
      live.clear();
    },
  };
}

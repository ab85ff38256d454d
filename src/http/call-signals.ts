import type { ServerResponse } from 'node:http';

/**
 * Abort signals for handlers that wait: aborted when the client disconnects before the response, or when the daemon
 * stops. A signal is created on first use, because most handlers need none.
 */
export interface CallSignals {
  of(res: ServerResponse): AbortSignal;
  /** Aborts all signals, including those created later. */
  stop(): void;
}

/**
 * Keeps a controller for each request that asked for a signal, until its response is closed. After `stop` signals are
 * aborted when they are created.
 */
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

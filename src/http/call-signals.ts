import type { ServerResponse } from 'node:http';

export type CallSignals = ReturnType<typeof createCallSignals>;

/**
 * Abort signals for handlers that wait: aborted when the client disconnects before the response, or when the daemon
 * stops. A signal is created on first use, because most handlers need none. Keeps a controller for each request that asked
 * for a signal, until its response is closed.
 */
export function createCallSignals() {
  const live = new Set<AbortController>();
  let stopped = false;
  return {
    of: (res: ServerResponse): AbortSignal => {
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
    /** Aborts all signals, including those created later. */
    stop: (): void => {
      stopped = true;
      for (const controller of live) controller.abort();
      live.clear();
    },
  };
}

/** Calls `release` when the response is closed: now if the client has disconnected already. */
export function whenClosed(res: ServerResponse, release: () => void): void {
  if (res.closed) release();
  else res.once('close', release);
}

import { setMaxListeners } from 'node:events';

/**
 * A signal that aborts when `parent` does, or after `ms`. Replaces `AbortSignal.any([parent, AbortSignal.timeout(ms)])`:
 * Node may garbage-collect a timeout signal that only the combined signal refers to, which then never aborts. Neither
 * signal warns about many listeners: work in progress adds them, and those on `parent` are removed after `ms`.
 */
export function abortAfter(ms: number, parent: AbortSignal): AbortSignal {
  const controller = new AbortController();
  setMaxListeners(0, parent, controller.signal);
  if (parent.aborted) {
    controller.abort(parent.reason);
    return controller.signal;
  }
  // While the timer is active, it references the controller.
  const timer = setTimeout(() => controller.abort(new DOMException('timed out', 'TimeoutError')), ms).unref();
  const abort = () => {
    clearTimeout(timer);
    controller.abort(parent.reason);
  };
  parent.addEventListener('abort', abort, { once: true, signal: controller.signal });
  return controller.signal;
}

/** Rejects with the reason of the signal when it is aborted first; the work continues. */
export function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) reject(signal.reason);
    const stop = () => reject(signal.reason);
    signal.addEventListener('abort', stop, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
  });
}

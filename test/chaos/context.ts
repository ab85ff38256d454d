import { setMaxListeners } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** May return a promise, which is awaited. */
type Undo = () => unknown;

/**
 * The resources of a running scenario. `clear` runs the deferred steps in reverse order, each even if another one
 * failed, and can be called more than once: at the end of a scenario, after a failure, on Ctrl-C.
 */
export interface ScenarioContext {
  readonly name: string;
  /** A temporary directory that is removed at the end. */
  readonly dir: string;
  /** Aborted when the scenario has ended or its time limit has passed. */
  readonly signal: AbortSignal;
  /** A duration of the full run; shorter in the short variant. */
  lasting(ms: number): number;
  defer(undo: Undo): void;
  clear(): Promise<void>;
}

export function createContext(name: string, short: boolean): ScenarioContext {
  const dir = mkdtempSync(join(tmpdir(), `postrider-chaos-${name}-`));
  const ending = new AbortController();
  // Every request in progress has a listener.
  setMaxListeners(0, ending.signal);
  const undo: Undo[] = [() => rmSync(dir, { recursive: true, force: true, maxRetries: 5 })];
  return {
    name,
    dir,
    signal: ending.signal,
    lasting: (ms) => (short ? ms / 2 : ms),
    defer: (step) => void undo.push(step),
    clear: async () => {
      ending.abort();
      for (let step = undo.pop(); step !== undefined; step = undo.pop()) {
        try {
          await step();
        } catch (error) {
          console.error(`cleanup of ${name}:`, error);
        }
      }
    },
  };
}

/** Resolves after `ms`, or as soon as the signal aborts. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms);
    function done() {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      resolve();
    }
    if (signal?.aborted) done();
    else signal?.addEventListener('abort', done);
  });
}

/** The promise's value, or null after `ms`. */
export async function within<T>(ms: number, promise: Promise<T>): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

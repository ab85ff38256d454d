import type { Tables } from '../tables.ts';
import type { Writer } from './writer.ts';

export interface CommitRetryOptions {
  /** Pause after the first failure, ms; doubled after each further one. */
  firstRetryMs: number;
  maxRetryMs: number;
  /** Called after each failure; `tries` counts from 1. */
  onError(error: unknown, tries: number): void;
  /** Aborted when the daemon stops: ends the pause in progress; further pauses take `firstRetryMs`. */
  hurry?: AbortSignal;
  /** No further try begins once it is aborted. */
  giveUp: AbortSignal;
  /** See `Writer.run`. */
  share?: string;
}

/**
 * Commits a unit of work that must not be lost: when it fails (a full disk, an unreadable table), it is repeated until
 * it is committed. Resolves with its result, or with null when `giveUp` was aborted.
 */
export async function commitWithRetries<T>(
  writer: Writer,
  unit: (tables: Tables) => T,
  options: CommitRetryOptions,
): Promise<{ result: T } | null> {
  const { firstRetryMs, maxRetryMs, onError, hurry, giveUp, share } = options;
  for (let tries = 1; !giveUp.aborted; tries++) {
    try {
      // A unit's type forbids promises, which TypeScript cannot check for a type parameter.
      return { result: (await writer.run(unit as (tables: Tables) => never, share)) as T };
    } catch (error) {
      onError(error, tries);
    }
    const isHurried = hurry?.aborted === true;
    const pauseMs = isHurried ? firstRetryMs : Math.min(firstRetryMs * 2 ** (tries - 1), maxRetryMs);
    await pause(pauseMs, isHurried || hurry === undefined ? [giveUp] : [giveUp, hurry]);
  }
  return null;
}

/** Ends early when one of the signals is aborted. */
function pause(ms: number, signals: readonly AbortSignal[]): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      for (const signal of signals) signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    for (const signal of signals) {
      signal.addEventListener('abort', done);
      if (signal.aborted) done();
    }
  });
}

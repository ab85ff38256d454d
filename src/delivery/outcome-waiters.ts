import type { DeliveryOutcome } from './attempt-result.ts';

/** Requests that wait for the first outcome of a message. */
export interface OutcomeWaiters {
  /** The first outcome of the message; null after `ms`, when the signal aborts, or when it has none now. */
  first(seq: number, ms: number, signal: AbortSignal): Promise<DeliveryOutcome | null>;
  /** Resolves all waits for the message. */
  resolve(seq: number, outcome: DeliveryOutcome | null): void;
}

type Waiter = (outcome: DeliveryOutcome | null) => void;

/** Each wait has a time limit, and there are no more of them than requests in progress. */
export function createOutcomeWaiters(): OutcomeWaiters {
  const waiters = new Map<number, Set<Waiter>>();
  return {
    first: (seq, ms, signal) =>
      new Promise((resolve) => {
        // The event of a signal that has aborted already is over.
        if (signal.aborted) {
          resolve(null);
          return;
        }
        const waiting = waiters.get(seq) ?? new Set();
        waiters.set(seq, waiting);
        const done = (outcome: DeliveryOutcome | null) => {
          clearTimeout(timer);
          signal.removeEventListener('abort', giveUp);
          waiting.delete(done);
          if (waiting.size === 0) waiters.delete(seq);
          resolve(outcome);
        };
        const giveUp = () => done(null);
        const timer = setTimeout(giveUp, ms);
        signal.addEventListener('abort', giveUp);
        waiting.add(done);
      }),
    resolve: (seq, outcome) => {
      for (const done of waiters.get(seq) ?? []) done(outcome);
    },
  };
}

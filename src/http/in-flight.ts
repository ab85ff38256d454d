import { createGate } from '../core/concurrency/gate.ts';
import { createTally } from '../core/concurrency/tally.ts';
import { type Refusal, refuse } from '../core/refusal.ts';

export type InFlight = ReturnType<typeof createInFlight>;

/** Responses of one account that may have megabytes: each stays in memory until the client has read it. */
export const MAX_LARGE_RESPONSES = 4;
/** Requests of one account that wait for one of them; more than the default limit of concurrent requests. */
const MAX_WAITING = 256;

/**
 * Counts the concurrent requests of each account, from authentication to the last byte of the response. Begins at zero;
 * keeps one number for each account with requests in progress, and a queue for each with large responses. Calling `release`
 * again has no effect.
 */
export function createInFlight() {
  const counts = createTally();
  const unlimited = Number.POSITIVE_INFINITY;
  const large = createGate({
    concurrency: unlimited,
    perKey: MAX_LARGE_RESPONSES,
    maxWaiting: unlimited,
    maxWaitingPerKey: MAX_WAITING,
  });
  return {
    /** Counts one request until `release` is called. Refuses when `limit` requests of the account are in progress. */
    enter: (accountId: string, limit: number | null): { release(): void } | Refusal => {
      if (limit !== null && counts.of(accountId) >= limit) return tooMany(limit);
      return { release: counts.hold(accountId) };
    },
    /**
     * Waits until fewer than MAX_LARGE_RESPONSES of the account are in progress, and counts one until `release` is called.
     * Refuses when too many wait: those whose clients have disconnected wait, too.
     */
    enterLargeResponse: (accountId: string): Promise<{ release(): void } | Refusal> =>
      new Promise((resolve) => {
        // The work of the gate ends when `release` is called; null: it has not begun.
        const work = () => new Promise<true>((end) => resolve({ release: () => end(true) }));
        void large.run(accountId, work).then((ended) => {
          if (ended === null) resolve(tooManyWaiting());
        });
      }),
  };
}

function tooManyWaiting(): Refusal {
  return refuse(
    'RATE_LIMITED',
    `${MAX_WAITING} requests of this account for contents wait already; try again in 1 s`,
    { retryAfter: 1 },
  );
}

function tooMany(limit: number): Refusal {
  return refuse('RATE_LIMITED', `This account has reached its limit of ${limit} concurrent requests`, {
    details: [
      {
        field: 'X-Id',
        name: 'concurrentRequests',
        message: `limit concurrentRequests (${limit}) is reached`,
      },
    ],
    retryAfter: 1,
    limit: { name: 'concurrent-requests', calls: limit, seconds: 1 },
  });
}

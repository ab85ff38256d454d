import { type Refusal, refuse } from '../core/refusal.ts';

/** Counts the concurrent requests of each account, from authentication to the last byte of the response. */
export interface InFlight {
  /** Counts one request until `release` is called. Refuses when `limit` requests of the account are in progress. */
  enter(accountId: string, limit: number | null): { release(): void } | Refusal;
}

/**
 * Begins at zero; keeps one number for each account with requests in progress. Calling `release` again has no effect.
 */
export function createInFlight(): InFlight {
  const counts = new Map<string, number>();
  return {
    enter: (accountId, limit) => {
      const count = counts.get(accountId) ?? 0;
      if (limit !== null && count >= limit) return tooMany(limit);
      counts.set(accountId, count + 1);
      let isCounted = true;
      return {
        release: () => {
          if (!isCounted) return;
          isCounted = false;
          const left = (counts.get(accountId) ?? 1) - 1;
          if (left > 0) counts.set(accountId, left);
          else counts.delete(accountId);
        },
      };
    },
  };
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

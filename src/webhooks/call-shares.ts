/**
 * Equal shares of concurrent webhook calls for the accounts that have calls in progress. The share shrinks when another
 * account begins; calls above it are not aborted, so that the total can exceed `maxCalls` for the duration of a call.
 * Begins without calls. In memory: an entry for each account with calls in progress.
 */
export function createCallShares(maxCalls: number) {
  const calls = new Map<string, number>();

  function add(accountId: string, change: 1 | -1): void {
    const count = (calls.get(accountId) ?? 0) + change;
    if (count === 0) calls.delete(accountId);
    else calls.set(accountId, count);
  }

  return {
    /** Whether the account has fewer calls in progress than its share, with this account counted. */
    isBelowShare: (accountId: string): boolean => {
      const count = calls.get(accountId) ?? 0;
      const accounts = count === 0 ? calls.size + 1 : calls.size;
      return count < maxCalls / accounts;
    },
    started: (accountId: string): void => add(accountId, 1),
    ended: (accountId: string): void => add(accountId, -1),
  };
}

export type CallShares = ReturnType<typeof createCallShares>;

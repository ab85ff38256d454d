import {
  emptyReputationCounts,
  REPUTATION_COUNTERS,
  type ReputationCounts,
} from '../store/reputation/reputation-counts.ts';

/* Sums and shares of the counts of a reputation. Pure. */

/** Shares of all attempts, then shares of the delivered messages; from 0 to 1, null: there are none. */
export interface ReputationRates {
  delivered: number | null;
  deferred: number | null;
  hardBounced: number | null;
  softBounced: number | null;
  blocked: number | null;
  complained: number | null;
  unsubscribed: number | null;
  opened: number | null;
  clicked: number | null;
}

export type RateName = keyof ReputationRates;

/** Counts of results of attempts: each attempt has one. */
const RESULTS = ['delivered', 'deferred', 'hardBounced', 'softBounced', 'blocked'] as const;

/** The number of attempts that a provider answered. */
export function attemptsOf(counts: ReputationCounts): number {
  return RESULTS.reduce((sum, result) => sum + counts[result], 0);
}

/** How many of what a rate is the share of. */
export function wholeOf(rate: RateName, counts: ReputationCounts): number {
  return (RESULTS as readonly string[]).includes(rate) ? attemptsOf(counts) : counts.delivered;
}

/**
 * Events count on the day on which they happen: an open of mail that was delivered before the period counts, too, so that shares of
 * delivered messages may exceed 1.
 */
export function reputationRates(counts: ReputationCounts): ReputationRates {
  const rate = (name: RateName) => {
    const whole = wholeOf(name, counts);
    return whole === 0 ? null : counts[name] / whole;
  };
  return {
    delivered: rate('delivered'),
    deferred: rate('deferred'),
    hardBounced: rate('hardBounced'),
    softBounced: rate('softBounced'),
    blocked: rate('blocked'),
    complained: rate('complained'),
    unsubscribed: rate('unsubscribed'),
    opened: rate('opened'),
    clicked: rate('clicked'),
  };
}

/** Adds the counts of the second object to the first. */
export function addCounts(sum: ReputationCounts, added: ReputationCounts): void {
  for (const counter of REPUTATION_COUNTERS) sum[counter] += added[counter];
}

/** The sum for a name, which is created at its first use. */
export function countsOf<Name>(sums: Map<Name, ReputationCounts>, name: Name): ReputationCounts {
  const known = sums.get(name);
  if (known !== undefined) return known;
  const created = emptyReputationCounts();
  sums.set(name, created);
  return created;
}

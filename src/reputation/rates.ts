import { recordOf } from '../core/record-of.ts';
import {
  emptyReputationCounts,
  REPUTATION_COUNTERS,
  type ReputationCounts,
} from '../store/reputation/reputation-counts.ts';

/* Sums and shares of the counts of a reputation. Pure. */

/** Counts of results of attempts: each attempt has one. */
const RESULTS = ['delivered', 'deferred', 'hardBounced', 'softBounced', 'blocked'] as const;

/** Shares of all attempts, then shares of the delivered messages. */
export const RATE_NAMES = [...RESULTS, 'complained', 'unsubscribed', 'opened', 'clicked'] as const;
export type RateName = (typeof RATE_NAMES)[number];

/** From 0 to 1; null: of nothing. */
export type ReputationRates = Record<RateName, number | null>;

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
  return recordOf(RATE_NAMES, (name) => {
    const whole = wholeOf(name, counts);
    return whole === 0 ? null : counts[name] / whole;
  });
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

import type { VariantCounts, WinnerMeasure } from '../store/campaigns/campaign-variants.ts';
import type { Decision } from './variants.ts';

/*
 * Compares the rates of variants: opens or clicks by people among delivered messages. The interval of a difference between two rates
 * is the hybrid score interval: Newcombe, R. G. (1998), Interval estimation for the difference between independent proportions:
 * comparison of eleven methods, Statistics in Medicine 17, 873-890, method 10 (from the score intervals of Wilson, 1927). It holds
 * for rates near 0 and for unequal groups. All intervals of a campaign together have a confidence of 95 %: with more than two
 * variants, that of each pair is corrected by Bonferroni. The winner is the variant whose differences to all others exclude 0, so
 * that the decision and the intervals that are shown agree.
 */

/** Of the intervals of all pairs of variants together. */
export const CONFIDENCE = 0.95;

/** Quantiles of the normal distribution for 1 - (1 - CONFIDENCE) / (2 * pairs), by the number of variants. */
const QUANTILES: Readonly<Record<number, number>> = { 2: 1.959964, 3: 2.39398, 4: 2.638257 };

/** Delivered messages of each variant, below which there is no winner: the interval is approximate. */
export const MIN_DELIVERED = 30;

/** How much a rate is above the highest one (0 or less); each a share, -1 to 1. */
export interface Difference {
  value: number;
  low: number;
  high: number;
}

export interface MeasuredRate {
  /** People who opened or clicked. */
  people: number;
  /** Among the delivered messages; null: there are none. */
  rate: number | null;
  /** To the variant with the highest rate; null: it has that, or a rate is missing. */
  difference: Difference | null;
}

/** The rates of each variant and their differences to the highest one; of equal rates the first one is the highest. */
export function compareRates(
  counts: readonly VariantCounts[],
  measure: Exclude<WinnerMeasure, 'none'>,
): { rates: MeasuredRate[]; best: number } {
  const z = QUANTILES[counts.length] ?? 0;
  const found = counts.map(({ delivered, opened, clicked }) => ({
    people: measure === 'opens' ? opened : clicked,
    delivered,
  }));
  const rateOf = ({ people, delivered }: Rate) => (delivered === 0 ? null : people / delivered);
  let best = 0;
  for (const [index, one] of found.entries())
    if ((rateOf(one) ?? -1) > (rateOf(found[best] ?? NOTHING) ?? -1)) best = index;
  const highest = found[best] ?? NOTHING;
  const rates = found.map((one, index) => ({
    people: one.people,
    rate: rateOf(one),
    difference:
      index === best || one.delivered === 0 || highest.delivered === 0 ? null : differenceOf(one, highest, z),
  }));
  return { rates, best };
}

/** The winner of a test; the first variant if there is none. */
export function winnerOf(
  counts: readonly VariantCounts[],
  measure: Exclude<WinnerMeasure, 'none'>,
): Pick<Decision, 'variant' | 'reason'> {
  if (counts.some(({ delivered }) => delivered < MIN_DELIVERED)) return { variant: 0, reason: 'tooFew' };
  const { rates, best } = compareRates(counts, measure);
  const isBetter = rates.every(
    ({ difference }, index) => index === best || (difference !== null && difference.high < 0),
  );
  return isBetter ? { variant: best, reason: 'better' } : { variant: 0, reason: 'notSignificant' };
}

interface Rate {
  people: number;
  delivered: number;
}

const NOTHING: Rate = { people: 0, delivered: 0 };

/** The difference of the rate of `one` to that of `other`. `z`: the quantile of the interval. */
export function differenceOf(one: Rate, other: Rate, z: number): Difference {
  const first = scoreInterval(one, z);
  const second = scoreInterval(other, z);
  const value = first.rate - second.rate;
  return {
    value,
    low: value - Math.hypot(first.rate - first.low, second.high - second.rate),
    high: value + Math.hypot(first.high - first.rate, second.rate - second.low),
  };
}

/** The score interval of a rate (Wilson). */
function scoreInterval({ people, delivered }: Rate, z: number) {
  const rate = people / delivered;
  const square = (z * z) / delivered;
  const center = (rate + square / 2) / (1 + square);
  const half = (Math.sqrt((rate * (1 - rate) + square / 4) / delivered) * z) / (1 + square);
  return { rate, low: Math.max(0, center - half), high: Math.min(1, center + half) };
}

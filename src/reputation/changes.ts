import { DAY } from '../core/clock.ts';
import { emptyReputationCounts, type ReputationCounts } from '../store/reputation/reputation-counts.ts';
import { addCounts, attemptsOf, countsOf, wholeOf } from './rates.ts';

/*
 * What changed at a provider and since when, from the counts by day. A change is reported only if it is significant: the shares
 * before and after differ more than chance explains, and enough to matter. Pure.
 */

/** Rates whose changes are reported, and whether a higher one is worse. */
const WATCHED = {
  deferred: { isWorseAbove: true, minDifference: 0.05, minWhole: 50 },
  blocked: { isWorseAbove: true, minDifference: 0.02, minWhole: 50 },
  hardBounced: { isWorseAbove: true, minDifference: 0.02, minWhole: 100 },
  complained: { isWorseAbove: true, minDifference: 0.001, minWhole: 500 },
  // Mail that is put into the spam folder is opened by few.
  opened: { isWorseAbove: false, minDifference: 0.1, minWhole: 200 },
} as const satisfies Partial<
  Record<keyof ReputationCounts, { isWorseAbove: boolean; minDifference: number; minWhole: number }>
>;
export type WatchedRate = keyof typeof WATCHED;
export const WATCHED_RATES = Object.keys(WATCHED) as readonly WatchedRate[]; // a constant

export interface RateChange {
  rate: WatchedRate;
  /** Epoch ms at which the first day (UTC) with the new share begins. */
  since: number;
  /** The share from that day on, and in the week before it. */
  share: number;
  before: number;
  trend: 'worse' | 'better';
  /** How many standard deviations the shares differ by. */
  score: number;
}

/** How many days before the change are compared with. */
const BEFORE_DAYS = 7;
/** Changes that began longer ago are no news. */
const MAX_AGE_DAYS = 14;
/** Days of counts that `rateChanges` needs. */
export const CHANGE_WINDOW_DAYS = BEFORE_DAYS + MAX_AGE_DAYS;
/** About one false change in 15,000 comparisons; each rate is compared at up to 14 days. */
const MIN_SCORE = 4;
/** A share must be so many times the other one. */
const MIN_RATIO = 1.5;
/** The newest day: its opens, and complaints, have not all arrived. */
const DELAYED: ReadonlySet<WatchedRate> = new Set<WatchedRate>(['opened']);

/** The changes of one provider's rates, the most significant first. `days`: counts by the beginning of their day. */
export function rateChanges(days: ReadonlyMap<number, ReputationCounts>, today: number): RateChange[] {
  return WATCHED_RATES.flatMap((rate) => {
    const change = changeOf(days, today, rate);
    return change === null ? [] : [change];
  }).toSorted((a, b) => b.score - a.score);
}

/** The day at which the shares before and after differ most clearly. */
function changeOf(
  days: ReadonlyMap<number, ReputationCounts>,
  today: number,
  rate: WatchedRate,
): RateChange | null {
  const last = DELAYED.has(rate) ? today - DAY : today;
  let best: RateChange | null = null;
  for (let age = 0; age < MAX_AGE_DAYS; age++) {
    const since = last - age * DAY;
    if (!days.has(since)) continue;
    const before = sumOf(days, since - BEFORE_DAYS * DAY, since - DAY);
    const after = sumOf(days, since, last);
    const change = compared(rate, before, after, since);
    if (change !== null && (best === null || change.score > best.score)) best = change;
  }
  return best !== null && isStillTrue(days, last, best) ? best : null;
}

/** Null: the difference can be chance, or does not matter. */
function compared(
  rate: WatchedRate,
  before: ReputationCounts,
  after: ReputationCounts,
  since: number,
): RateChange | null {
  const { minWhole, minDifference, isWorseAbove } = WATCHED[rate];
  const [wholeBefore, wholeAfter] = [wholeOf(rate, before), wholeOf(rate, after)];
  if (wholeBefore < minWhole || wholeAfter < minWhole) return null;
  const [old, share] = [Math.min(1, before[rate] / wholeBefore), Math.min(1, after[rate] / wholeAfter)];
  const [low, high] = [Math.min(old, share), Math.max(old, share)];
  if (high - low < minDifference || high < MIN_RATIO * low) return null;
  // Two proportions: the standard deviation of their difference if both were the same.
  const all = Math.min(1, (before[rate] + after[rate]) / (wholeBefore + wholeAfter));
  const deviation = Math.sqrt(all * (1 - all) * (1 / wholeBefore + 1 / wholeAfter));
  const score = deviation === 0 ? 0 : (high - low) / deviation;
  if (score < MIN_SCORE) return null;
  return { rate, since, share, before: old, trend: share > old === isWorseAbove ? 'worse' : 'better', score };
}

/** Whether the last day with mail is nearer to the new share than to the old one: a day that is over is no change. */
function isStillTrue(
  days: ReadonlyMap<number, ReputationCounts>,
  last: number,
  { rate, since, share, before }: RateChange,
): boolean {
  for (let day = last; day >= since; day -= DAY) {
    const counts = days.get(day);
    const whole = counts === undefined ? 0 : wholeOf(rate, counts);
    if (counts === undefined || whole === 0) continue;
    const newest = counts[rate] / whole;
    return Math.abs(newest - share) <= Math.abs(newest - before);
  }
  return false;
}

/** Sum of the days from `from` to `to`, both included. */
function sumOf(days: ReadonlyMap<number, ReputationCounts>, from: number, to: number): ReputationCounts {
  const sum = emptyReputationCounts();
  for (let day = from; day <= to; day += DAY) {
    const counts = days.get(day);
    if (counts !== undefined) addCounts(sum, counts);
  }
  return sum;
}

/** A change at a provider of the mail of a domain. */
export interface ProviderChange extends RateChange {
  domain: string;
  provider: string;
}

/** Rows of a domain and provider with their days. */
export interface DailyCounts {
  domain: string;
  provider: string;
  day: number;
  counts: ReputationCounts;
}

const MAX_CHANGES = 20;
/** Pairs of a domain and a provider that are examined, those with the most attempts first. */
const MAX_PAIRS = 500;

/** The changes at all providers, worse ones first, then the most significant. At most MAX_CHANGES. */
export function providerChanges(rows: readonly DailyCounts[], today: number): ProviderChange[] {
  const pairs = new Map<
    string,
    { domain: string; provider: string; days: Map<number, ReputationCounts>; attempts: number }
  >();
  for (const { domain, provider, day, counts } of rows) {
    const key = `${domain} ${provider}`;
    const pair = pairs.get(key) ?? { domain, provider, days: new Map(), attempts: 0 };
    pairs.set(key, pair);
    addCounts(countsOf(pair.days, day), counts);
    pair.attempts += attemptsOf(counts);
  }
  return [...pairs.values()]
    .toSorted((a, b) => b.attempts - a.attempts)
    .slice(0, MAX_PAIRS)
    .flatMap(({ domain, provider, days }) =>
      rateChanges(days, today).map((change) => ({ domain, provider, ...change })),
    )
    .toSorted((a, b) => Number(a.trend === 'better') - Number(b.trend === 'better') || b.score - a.score)
    .slice(0, MAX_CHANGES);
}

/** What a provider does with the mail, for the sentence of a change. */
const SENTENCES: Record<
  WatchedRate,
  (values: Record<'provider' | 'share' | 'domain' | 'since' | 'before', string>) => string
> = {
  deferred: ({ provider, share, domain, since, before }) =>
    `${provider} has deferred ${share} of ${domain}'s mail since ${since}; it was ${before} in the week before.`,
  blocked: ({ provider, share, domain, since, before }) =>
    `${provider} has blocked ${share} of ${domain}'s mail since ${since}; it was ${before} in the week before.`,
  hardBounced: ({ provider, share, domain, since, before }) =>
    `${share} of ${domain}'s mail to ${provider} has hard bounced since ${since}; it was ${before} in the week before.`,
  complained: ({ provider, share, domain, since, before }) =>
    `${share} of ${domain}'s mail at ${provider} has been reported as spam since ${since}; it was ${before} in the week before.`,
  opened: ({ provider, share, domain, since, before }) =>
    `${share} of ${domain}'s mail at ${provider} has been opened since ${since}; it was ${before} in the week before.`,
};

/** `Google has deferred 12 % of example.com's mail since 24 November; it was 1 % in the week before.` */
export function changeSentence({ rate, provider, domain, since, share, before }: ProviderChange): string {
  return SENTENCES[rate]({
    provider: provider === 'other' ? 'Other providers' : provider,
    domain,
    share: percentText(share),
    before: percentText(before),
    since: new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'long', timeZone: 'UTC' }).format(since),
  });
}

/** `12 %`, `0.3 %`: two digits that matter. */
export function percentText(share: number): string {
  return `${Number((share * 100).toPrecision(2))} %`;
}

import { DAY, HOUR, iso } from '../core/clock.ts';
import { recordOf } from '../core/record-of.ts';
import {
  COUNTED_OUTCOMES,
  type CountDimension,
  type CountedOutcome,
  hourOf,
} from '../store/messages/hourly-counts.ts';
import { readQuery } from '../store/readers/reads.ts';
import type { Tables } from '../store/tables.ts';

/* Volume and outcomes of messages in a period, from the counts by hour: in total (MessageStats) and over time (Series). */

export interface MessageStats {
  /** Epoch ms, whole hours. */
  from: number;
  to: number;
  /** Periods in order of time; others by volume, the largest first. */
  rows: StatsRow[];
  total: OutcomeCounts;
}

/** `name`: the beginning of the hour or day (UTC, epoch ms as text), or an account id, domain id or provider. */
export interface StatsRow {
  name: string;
  counts: OutcomeCounts;
}

export interface OutcomeCounts {
  outcomes: Record<CountedOutcome, number>;
  /** Counts of the classes of bounces, deferrals and failures that occurred. */
  classes: Record<'bounced' | 'deferred' | 'failed', Record<string, number>>;
}

export interface OutcomeRates {
  /** Share of the messages with a final outcome (delivered, bounced, failed), from 0 to 1; null: there is none. */
  delivered: number | null;
  bounced: number | null;
  /** Share of the delivered messages; null: there is none. */
  complained: number | null;
  opened: number | null;
  clicked: number | null;
}

export const STATS_GROUPS = ['hour', 'day', 'provider', 'domain', 'account'] as const;
export type StatsGroup = (typeof STATS_GROUPS)[number];

export interface StatsQuery {
  by: StatsGroup;
  /** Epoch ms. The hours that contain them are included. */
  from: number;
  to: number;
  accountId?: string | undefined;
}

/** Counts of each name, by the beginning of the spans in which messages were counted. */
type NamedCounts = Map<string, Map<number, OutcomeCounts>>;

/**
 * Reads the counts of a period, one hour after the other: each is a short read of the rows of that hour, so that no
 * checkpoint waits for it, whatever the length of the period. `spanOf`: the beginning of the span of an hour.
 */
function readCounts(
  { hourlyCounts, tagCounts }: Tables,
  {
    from,
    to,
    accountId,
    tag,
  }: { from: number; to: number; accountId?: string | undefined; tag?: string | undefined },
  dimension: CountDimension | null,
  spanOf: (hour: number) => number,
): { named: NamedCounts; total: OutcomeCounts } {
  const named: NamedCounts = new Map();
  const total = emptyCounts();
  for (let hour = hourlyCounts.nextHour(from); hour !== null && hour < to; ) {
    const sums =
      tag === undefined || accountId === undefined
        ? hourlyCounts.sums({ hour, accountId }, dimension)
        : tagCounts.sums({ hour, accountId, tag });
    for (const { name, outcome, outcomeClass, messages } of sums)
      for (const { outcomes, classes } of [countsAt(named, name, spanOf(hour)), total]) {
        outcomes[outcome] += messages;
        if (outcome !== 'bounced' && outcome !== 'deferred' && outcome !== 'failed') continue;
        classes[outcome][outcomeClass] = (classes[outcome][outcomeClass] ?? 0) + messages;
      }
    hour = hourlyCounts.nextHour(hour + HOUR);
  }
  return { named, total };
}

function countsAt(named: NamedCounts, name: string, at: number): OutcomeCounts {
  const spans = named.get(name) ?? new Map<number, OutcomeCounts>();
  named.set(name, spans);
  const counts = spans.get(at) ?? emptyCounts();
  spans.set(at, counts);
  return counts;
}

/** Reads the counts of a period. */
export function readMessageStats(tables: Tables, { by, from, to, accountId }: StatsQuery): MessageStats {
  const period = { from: hourOf(from), to: hourOf(to + HOUR - 1) };
  const dimension: CountDimension | null = by === 'hour' || by === 'day' ? null : by;
  const length = by === 'hour' ? HOUR : DAY;
  const spanOf = dimension === null ? (hour: number) => hour - (hour % length) : () => period.from;
  const { named, total } = readCounts(tables, { ...period, accountId }, dimension, spanOf);
  const rows = [...named].flatMap(([name, spans]) =>
    Array.from(spans, ([at, counts]) => ({ name: dimension === null ? String(at) : name, counts })),
  );
  if (dimension !== null)
    rows.sort((a, b) => volumeOf([b.counts]) - volumeOf([a.counts]) || a.name.localeCompare(b.name));
  return { ...period, rows, total };
}

/**
 * Pure. Outcomes count in the hour in which they happen: an open of mail that was delivered in an earlier period counts
 * too, so that shares of delivered messages may exceed 1.
 */
export function ratesOf({ outcomes }: OutcomeCounts): OutcomeRates {
  const { delivered, bounced, failed, complained, opened, clicked } = outcomes;
  const final = delivered + bounced + failed;
  return {
    delivered: share(delivered, final),
    bounced: share(bounced, final),
    complained: share(complained, delivered),
    opened: share(opened, delivered),
    clicked: share(clicked, delivered),
  };
}

function share(part: number, whole: number): number | null {
  return whole === 0 ? null : part / whole;
}

/** Length of the intervals of a series. */
export const SERIES_INTERVALS = ['hour', 'day'] as const;
export type SeriesInterval = (typeof SERIES_INTERVALS)[number];

export interface SeriesQuery {
  interval: SeriesInterval;
  /** Null: one series of all messages. */
  by: CountDimension | null;
  /** Epoch ms. The intervals (UTC) that contain them are included. */
  from: number;
  to: number;
  /** Undefined: all accounts, for the operator. */
  accountId?: string | undefined;
  /** Only messages with this tag, in one series; with an account. */
  tag?: string | undefined;
}

/** The counts of one interval, which begins at `at`. */
export type SeriesPoint = { at: string } & Record<CountedOutcome, number>;

export interface Series {
  /** An account id, domain id or provider; OTHERS for all that have no series of their own; absent without `by`. */
  name?: string;
  /** Counts in order of time, without intervals in which nothing was counted. */
  points: SeriesPoint[];
}

export interface MessageSeries {
  interval: SeriesInterval;
  from: string;
  to: string;
  /** Series in the order of their volume, the largest first. */
  series: Series[];
}

/** Maximum number of series that are distinguished; the others are added up. */
export const MAX_SERIES = 20;
export const OTHERS = 'other';

/** Reads the series of a period. Its time depends on the hours and on the combinations of each, at most 500 per account. */
export const messageSeries = readQuery(
  'messageSeries',
  (tables: Tables, { interval, by, from, to, accountId, tag }: SeriesQuery): MessageSeries => {
    const length = interval === 'day' ? DAY : HOUR;
    const period = { from: from - (from % length), to: Math.ceil(to / length) * length };
    const { named } = readCounts(tables, { ...period, accountId, tag }, by, (hour) => hour - (hour % length));
    return { interval, from: iso(period.from), to: iso(period.to), series: seriesOf(named, by !== null) };
  },
);

function seriesOf(named: NamedCounts, isNamed: boolean): Series[] {
  const ordered = [...named].toSorted(
    ([one, a], [two, b]) => volumeOf(b.values()) - volumeOf(a.values()) || one.localeCompare(two),
  );
  // The provider of recipient domains that are not counted separately is named OTHERS, too.
  const own = ordered.filter(([name]) => name !== OTHERS).slice(0, MAX_SERIES);
  const kept = new Set(own.map(([name]) => name));
  const others: NamedCounts = new Map();
  for (const [name, spans] of ordered) {
    if (kept.has(name)) continue;
    for (const [at, { outcomes }] of spans) {
      const sum = countsAt(others, OTHERS, at).outcomes;
      for (const outcome of COUNTED_OUTCOMES) sum[outcome] += outcomes[outcome];
    }
  }
  return [...own, ...others].map(([name, spans]) => ({
    ...(isNamed ? { name } : {}),
    points: [...spans]
      .toSorted(([one], [two]) => one - two)
      .map(([at, { outcomes }]) => ({ at: iso(at), ...outcomes })),
  }));
}

function volumeOf(counts: Iterable<OutcomeCounts>): number {
  let volume = 0;
  for (const { outcomes } of counts)
    volume += outcomes.accepted + outcomes.delivered + outcomes.bounced + outcomes.deferred;
  return volume;
}

function emptyCounts(): OutcomeCounts {
  return {
    outcomes: recordOf(COUNTED_OUTCOMES, () => 0),
    classes: { bounced: {}, deferred: {}, failed: {} },
  };
}

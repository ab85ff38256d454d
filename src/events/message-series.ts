import { DAY, HOUR, iso } from '../core/clock.ts';
import {
  COUNTED_OUTCOMES,
  type CountDimension,
  type CountedOutcome,
  hourOf,
} from '../store/messages/hourly-counts.ts';
import { readQuery } from '../store/readers/reads.ts';
import type { Tables } from '../store/tables.ts';

/* Volume and outcomes of messages over time, from the counts by hour. */

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

type Counts = Record<CountedOutcome, number>;
type CountsByTime = Map<number, Counts>;

/** Reads the series of a period. Its time depends on the hours and on the combinations of each, at most 500 per account. */
export const messageSeries = readQuery(
  'messageSeries',
  (tables: Tables, { interval, by, from, to, accountId }: SeriesQuery): MessageSeries => {
    const length = interval === 'day' ? DAY : HOUR;
    const first = from - (from % length);
    const end = Math.ceil(to / length) * length;
    const named = new Map<string, CountsByTime>();
    const { hourlyCounts } = tables;
    for (let hour = hourlyCounts.nextHour(hourOf(first)); hour !== null && hour < end; ) {
      const at = hour - (hour % length);
      for (const { name, outcome, messages } of hourlyCounts.sums({ hour, accountId }, by))
        countsAt(named, name, at)[outcome] += messages;
      hour = hourlyCounts.nextHour(hour + HOUR);
    }
    return { interval, from: iso(first), to: iso(end), series: seriesOf(named, by !== null) };
  },
);

function countsAt(named: Map<string, CountsByTime>, name: string, at: number): Counts {
  const times = named.get(name) ?? new Map<number, Counts>();
  named.set(name, times);
  const counts = times.get(at) ?? emptyCounts();
  times.set(at, counts);
  return counts;
}

function seriesOf(named: Map<string, CountsByTime>, isNamed: boolean): Series[] {
  const ordered = [...named].toSorted(
    ([one, a], [two, b]) => volumeOf(b) - volumeOf(a) || one.localeCompare(two),
  );
  // The provider of recipient domains that are not counted separately is named OTHERS, too.
  const own = ordered.filter(([name]) => name !== OTHERS).slice(0, MAX_SERIES);
  const kept = new Set(own.map(([name]) => name));
  const others: Map<string, CountsByTime> = new Map();
  for (const [name, times] of ordered) {
    if (kept.has(name)) continue;
    for (const [at, counts] of times) {
      const sum = countsAt(others, OTHERS, at);
      for (const outcome of COUNTED_OUTCOMES) sum[outcome] += counts[outcome];
    }
  }
  return [...own, ...others].map(([name, times]) => ({
    ...(isNamed ? { name } : {}),
    points: [...times]
      .toSorted(([one], [two]) => one - two)
      .map(([at, counts]) => ({ at: iso(at), ...counts })),
  }));
}

function volumeOf(times: CountsByTime): number {
  let volume = 0;
  for (const { accepted, delivered, bounced, deferred } of times.values())
    volume += accepted + delivered + bounced + deferred;
  return volume;
}

function emptyCounts(): Counts {
  // Sound: the keys are all outcomes.
  return Object.fromEntries(COUNTED_OUTCOMES.map((outcome) => [outcome, 0])) as Counts;
}

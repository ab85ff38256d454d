import { DAY, HOUR } from '../core/clock.ts';
import {
  COUNTED_OUTCOMES,
  type CountDimension,
  type CountedOutcome,
  type HourSum,
  hourOf,
} from '../store/messages/hourly-counts.ts';
import type { Tables } from '../store/tables.ts';

/** Volume and outcomes of messages in a period, from the counts by hour. */
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

/**
 * Reads the counts of a period, one hour after the other: each is a short read of the rows of that hour, so that no
 * checkpoint waits for it, whatever the length of the period.
 */
export function readMessageStats(tables: Tables, { by, from, to, accountId }: StatsQuery): MessageStats {
  const first = hourOf(from);
  const end = hourOf(to + HOUR - 1);
  const rows = new Map<string, OutcomeCounts>();
  const total = emptyCounts();
  const dimension: CountDimension | null = by === 'hour' || by === 'day' ? null : by;
  const { hourlyCounts } = tables;
  for (let hour = hourlyCounts.nextHour(first); hour !== null && hour < end; ) {
    for (const sum of hourlyCounts.sums({ hour, accountId }, dimension)) {
      const name = dimension !== null ? sum.name : String(by === 'day' ? hour - (hour % DAY) : hour);
      const counts = rows.get(name) ?? emptyCounts();
      rows.set(name, counts);
      add(counts, sum);
      add(total, sum);
    }
    hour = hourlyCounts.nextHour(hour + HOUR);
  }
  const list = Array.from(rows, ([name, counts]) => ({ name, counts }));
  if (dimension !== null) list.sort((a, b) => volumeOf(b) - volumeOf(a) || a.name.localeCompare(b.name));
  return { from: first, to: end, rows: list, total };
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

function volumeOf({ counts: { outcomes } }: StatsRow): number {
  return outcomes.accepted + outcomes.delivered + outcomes.bounced + outcomes.deferred;
}

function emptyCounts(): OutcomeCounts {
  return {
    // Sound: the keys are all outcomes.
    outcomes: Object.fromEntries(
      COUNTED_OUTCOMES.map((outcome) => [outcome, 0]),
    ) as OutcomeCounts['outcomes'],
    classes: { bounced: {}, deferred: {}, failed: {} },
  };
}

function add(counts: OutcomeCounts, { outcome, outcomeClass, messages }: HourSum): void {
  counts.outcomes[outcome] += messages;
  if (outcome !== 'bounced' && outcome !== 'deferred' && outcome !== 'failed') return;
  const classes = counts.classes[outcome];
  classes[outcomeClass] = (classes[outcomeClass] ?? 0) + messages;
}

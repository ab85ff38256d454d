import type { DataOf } from '../operations.ts';

/** The outcomes of an interval. */
export type Point = DataOf<'/web-setup/statistics'>['series'][number]['points'][number];

/** Shares of the messages from which receivers begin to distrust a sender, and Gmail's recommendation. */
export const MAX_BOUNCED = 0.05;
export const MAX_COMPLAINED = 0.001;

export type Totals = Record<
  'accepted' | 'delivered' | 'deferred' | 'bounced' | 'complained' | 'opened',
  number
>;

/** The sums of several intervals. */
export function totals(points: readonly Point[]): Totals {
  const sums = { accepted: 0, delivered: 0, deferred: 0, bounced: 0, complained: 0, opened: 0 };
  for (const point of points) {
    sums.accepted += point.accepted;
    sums.delivered += point.delivered;
    sums.deferred += point.deferred;
    sums.bounced += point.bounced;
    sums.complained += point.complained;
    sums.opened += point.opened;
  }
  return sums;
}

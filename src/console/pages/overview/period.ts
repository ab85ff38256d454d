/** The periods of the overview. */
export const PERIODS = ['24h', '7d', '30d'] as const;
export type Period = (typeof PERIODS)[number];
export const DEFAULT_PERIOD: Period = '24h';

/** A period and the one of the same length before it, in whole intervals of UTC. Epoch ms. */
export interface PeriodRange {
  interval: 'hour' | 'day';
  /** The beginning of the period before. */
  before: number;
  from: number;
  /** The end of the interval that contains now. */
  to: number;
  /** The length of an interval, ms. */
  step: number;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const INTERVALS: Record<Period, { interval: PeriodRange['interval']; step: number; count: number }> = {
  '24h': { interval: 'hour', step: HOUR_MS, count: 24 },
  '7d': { interval: 'day', step: DAY_MS, count: 7 },
  '30d': { interval: 'day', step: DAY_MS, count: 30 },
};

/** The range of a period that ends with the interval of `now`. */
export function rangeOf(period: Period, now: number): PeriodRange {
  const { interval, step, count } = INTERVALS[period];
  const to = (Math.floor(now / step) + 1) * step;
  return { interval, step, to, from: to - count * step, before: to - 2 * count * step };
}

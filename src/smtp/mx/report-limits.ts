import { type Clock, DAY, HOUR } from '../../core/clock.ts';
import { createLru } from '../../core/lru.ts';

/**
 * Limits the reports that one sender delivers to `dmarc@` and `tlsrpt@`. Receivers send one report per domain and
 * day, a few send one per hour: the limits are far above that and far below what would displace other reporters. A
 * sender above its limit receives a 451, so that a genuine report is delayed and not lost.
 */
export interface ReportLimits {
  /** Whether this sender may deliver another report on `domain` now. */
  allows(sender: string, domain: string): boolean;
  /** Counts an accepted report. */
  count(sender: string, domain: string): void;
}

interface Limit {
  hour: number;
  day: number;
}

/** Reports of one sender on one domain. */
export const REPORTS_ON_DOMAIN: Limit = { hour: 60, day: 300 };
/** Reports of one sender on all domains. */
export const REPORTS_TOTAL: Limit = { hour: 3000, day: 30_000 };

/** Above this, the least recently counted sender is forgotten: its count begins at zero, so no report is refused for it. */
const MAX_COUNTERS = 20_000;

/** All counts are in memory and begin at zero: 20,000 counters, each for the current hour and day of UTC. */
export function createReportLimits(clock: Clock): ReportLimits {
  const counters = createLru<Counter>(MAX_COUNTERS);

  function counterOf(key: string): Counter {
    const now = clock.now();
    const known = counters.get(key);
    const hour = Math.floor(now / HOUR);
    const day = Math.floor(now / DAY);
    return {
      hour,
      day,
      inHour: known?.hour === hour ? known.inHour : 0,
      inDay: known?.day === day ? known.inDay : 0,
    };
  }

  const keysOf = (sender: string, domain: string): [key: string, limit: Limit][] => [
    [JSON.stringify([sender, domain]), REPORTS_ON_DOMAIN],
    [JSON.stringify([sender]), REPORTS_TOTAL],
  ];

  return {
    allows: (sender, domain) =>
      keysOf(sender, domain).every(([key, limit]) => {
        const { inHour, inDay } = counterOf(key);
        return inHour < limit.hour && inDay < limit.day;
      }),
    count: (sender, domain) => {
      for (const [key] of keysOf(sender, domain)) {
        const counter = counterOf(key);
        counters.set(key, { ...counter, inHour: counter.inHour + 1, inDay: counter.inDay + 1 });
      }
    },
  };
}

interface Counter {
  /** The current hour and day, since the epoch. */
  hour: number;
  day: number;
  inHour: number;
  inDay: number;
}

import { LRUCache } from 'lru-cache';
import type { Rate } from '../accounts/rate-limits.ts';
import type { Clock } from '../core/clock.ts';

/**
 * A level that rises with every unit charged and drains at a constant rate. Whoever is above the burst waits until
 * the excess has drained: clients are slowed down to the rate before anything is refused.
 */
export interface Meter {
  /** Negative units are given back; the level never falls below 0. */
  charge(units: number): void;
  /** Milliseconds until the level is within the burst. */
  waitMs(): number;
}

export function createMeter(clock: Clock, rate: Rate): Meter {
  let level = 0;
  let at = clock.now();
  const drain = (): void => {
    const now = clock.now();
    // A clock that was set back drains nothing.
    level = Math.max(0, level - (Math.max(0, now - at) / 1000) * rate.perSecond);
    at = now;
  };
  return {
    charge: (units) => {
      drain();
      level = Math.max(0, level + units);
    },
    waitMs: () => {
      drain();
      return Math.max(0, Math.ceil(((level - rate.burst) / rate.perSecond) * 1000));
    },
  };
}

/** Meters by name, at most `max` of them: the least recently used is forgotten first. */
export function createMeters(clock: Clock, rate: Rate, max: number): { of(name: string): Meter } {
  const meters = new LRUCache<string, Meter>({ max });
  return {
    of: (name) => {
      const known = meters.get(name);
      if (known !== undefined) return known;
      const meter = createMeter(clock, rate);
      meters.set(name, meter);
      return meter;
    },
  };
}

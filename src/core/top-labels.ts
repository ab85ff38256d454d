import { LRUCache } from 'lru-cache';

/**
 * Chooses which values of a label have time series of their own, where callers choose the values: accounts,
 * destinations. The values with the most volume do; all others share the value `other`. The volume is halved every hour,
 * so that values that have become idle give way to others.
 */
export interface TopLabels {
  /** Counts `amount` for a value; returns the label: the value or `OTHER_LABEL`. */
  labelOf(value: string, amount?: number): string;
  /** Values that have a series now. */
  values(): string[];
}

export interface TopLabelsOptions {
  /** Series at most, without `other`. */
  max: number;
  /** Monotonic milliseconds. */
  now(): number;
  /** A value lost its series: its metrics are removed. What it counts from now on counts to `other`. */
  onDropped(value: string): void;
}

export const OTHER_LABEL = 'other';
/** Values whose volume is in memory for each that has a series. */
const CANDIDATES_PER_LABEL = 20;
const HALF_LIFE_MS = 3_600_000;
/** A value replaces another one when it has so many times its volume, so that equal values do not alternate. */
const LEAD = 2;

interface Volume {
  amount: number;
  at: number;
}

export function createTopLabels({ max, now, onDropped }: TopLabelsOptions): TopLabels {
  const chosen = new Map<string, Volume>();
  const candidates = new LRUCache<string, Volume>({ max: max * CANDIDATES_PER_LABEL });

  function increase(volume: Volume, amount: number): void {
    const at = now();
    volume.amount = decayed(volume, at) + amount;
    volume.at = at;
  }

  /** The chosen value with the least volume. */
  function least(at: number): { value: string; amount: number } | null {
    let found: { value: string; amount: number } | null = null;
    for (const [value, volume] of chosen) {
      const amount = decayed(volume, at);
      if (found === null || amount < found.amount) found = { value, amount };
    }
    return found;
  }

  function candidate(value: string, amount: number): string {
    const volume = candidates.get(value) ?? { amount: 0, at: now() };
    increase(volume, amount);
    candidates.set(value, volume);
    if (chosen.size >= max) {
      const last = least(volume.at);
      if (last === null || volume.amount < LEAD * last.amount + 1) return OTHER_LABEL;
      const dropped = chosen.get(last.value);
      chosen.delete(last.value);
      if (dropped !== undefined) candidates.set(last.value, dropped);
      onDropped(last.value);
    }
    candidates.delete(value);
    chosen.set(value, volume);
    return value;
  }

  return {
    labelOf: (value, amount = 1) => {
      if (value === OTHER_LABEL) return OTHER_LABEL;
      const volume = chosen.get(value);
      if (volume === undefined) return candidate(value, amount);
      increase(volume, amount);
      return value;
    },
    values: () => [...chosen.keys()],
  };
}

function decayed({ amount, at }: Volume, now: number): number {
  return amount * 2 ** (-Math.max(0, now - at) / HALF_LIFE_MS);
}

import { LRUCache } from 'lru-cache';

export interface TopLabelsOptions {
  /** Series at most, without `other`. */
  max: number;
  /** Monotonic milliseconds. */
  now(): number;
  /** Called when a value loses its series: the caller removes its metrics. Its further amounts count for `other`. */
  onDropped(value: string): void;
}

export const OTHER_LABEL = 'other';
/** Values without a series whose volume is recorded, per series. */
const CANDIDATES_PER_LABEL = 20;
const HALF_LIFE_MS = 3_600_000;
/** A value replaces another one with this multiple of its volume, so that equal values do not alternate. */
const LEAD = 2;

interface Volume {
  amount: number;
  at: number;
}

/**
 * Selects the values of a metric label that have separate time series, where the set of values is unbounded: accounts,
 * destinations. The values with the most volume are selected; all others share the value `other`. Volume halves every
 * hour, so that idle values are replaced.
 *
 * Begins without series: the first `max` values get them. Keeps the volumes of up to 20 times as many other values in
 * memory. Has no timer: volumes decay when they are compared.
 */
export function createTopLabels({ max, now, onDropped }: TopLabelsOptions) {
  const chosen = new Map<string, Volume>();
  const candidates = new LRUCache<string, Volume>({ max: max * CANDIDATES_PER_LABEL });

  function increase(volume: Volume, amount: number): void {
    const at = now();
    volume.amount = decayed(volume, at) + amount;
    volume.at = at;
  }

  /** The least volume when it was last searched: a lower bound, because volumes only grow apart from their decay. */
  let known: Volume = { amount: 0, at: 0 };

  /** The chosen value with the least volume. */
  function least(at: number): { value: string; amount: number } | null {
    let found: { value: string; amount: number } | null = null;
    for (const [value, volume] of chosen) {
      const amount = decayed(volume, at);
      if (found === null || amount < found.amount) found = { value, amount };
    }
    return found;
  }

  /** Counts for a value without a series, which gets one if its volume is large enough; returns its label. */
  function countCandidate(value: string, amount: number): string {
    const volume = candidates.get(value) ?? { amount: 0, at: now() };
    increase(volume, amount);
    candidates.set(value, volume);
    if (chosen.size >= max) {
      if (!exceeds(volume, decayed(known, volume.at))) return OTHER_LABEL;
      const last = least(volume.at);
      known = { amount: last?.amount ?? 0, at: volume.at };
      if (last === null || !exceeds(volume, last.amount)) return OTHER_LABEL;
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
    /** Counts `amount` for a value; returns the label: the value or `OTHER_LABEL`. */
    labelOf: (value: string, amount: number = 1): string => {
      if (value === OTHER_LABEL) return OTHER_LABEL;
      const volume = chosen.get(value);
      if (volume === undefined) return countCandidate(value, amount);
      increase(volume, amount);
      return value;
    },
    /** Values that have a series now. */
    values: (): string[] => [...chosen.keys()],
  };
}

/** Whether a value with this volume replaces one with the volume `other`. */
function exceeds({ amount }: Volume, other: number): boolean {
  return amount >= LEAD * other + 1;
}

function decayed({ amount, at }: Volume, now: number): number {
  return amount * 2 ** (-Math.max(0, now - at) / HALF_LIFE_MS);
}

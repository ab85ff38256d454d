import type { Sample, Samples } from '../../doctor/exposition.ts';

export type Readings = ReturnType<typeof createReadings>;

export type Labels = Readonly<Record<string, string>>;

export interface Scrape {
  samples: Samples;
  /** Monotonic ms. */
  at: number;
}

/** The metrics of two scrapes of a daemon, and the changes between them. `before` null: there is one scrape only. */
export function createReadings(now: Scrape, before: Scrape | null) {
  const seconds = before === null ? 0 : (now.at - before.at) / 1000;

  function sum(samples: Samples, name: string, labels: Labels): number | null {
    const found = (samples.get(name) ?? []).filter((sample) => matches(sample, labels));
    return found.length === 0 ? null : found.reduce((total, { value }) => total + value, 0);
  }

  /** Increase of each series. A counter that was reset by a restart of the daemon counts from 0. */
  function increase(name: string, labels: Labels): number {
    const earlier = new Map((before?.samples.get(name) ?? []).map((sample) => [keyOf(sample), sample.value]));
    return (now.samples.get(name) ?? [])
      .filter((sample) => matches(sample, labels))
      .reduce((total, sample) => {
        const from = earlier.get(keyOf(sample)) ?? 0;
        return total + (sample.value >= from ? sample.value - from : sample.value);
      }, 0);
  }

  return {
    /** The sum of a metric's samples with these labels; null: there is none. */
    value: (name: string, labels: Labels = {}): number | null => sum(now.samples, name, labels),
    /** The samples of a metric with the largest values, by one label. */
    largest: (name: string, label: string, count: number): { name: string; value: number }[] =>
      (now.samples.get(name) ?? [])
        .map(({ labels, value }) => ({ name: labels[label] ?? '', value }))
        .toSorted((a, b) => b.value - a.value)
        .slice(0, count),
    /** Increase of a counter per second; null: there is only one scrape. */
    rate: (name: string, labels: Labels = {}): number | null =>
      before === null || seconds <= 0 ? null : increase(name, labels) / seconds,
    /** All values of a label of a metric. */
    values: (name: string, label: string): string[] => [
      ...new Set((now.samples.get(name) ?? []).map(({ labels }) => labels[label] ?? '')),
    ],
    /** Average of a histogram's observations between the scrapes; null: there was none. */
    mean: (histogram: string): number | null => {
      const count = increase(`${histogram}_count`, {});
      return before === null || count === 0 ? null : increase(`${histogram}_sum`, {}) / count;
    },
    /** Upper bound of the bucket that contains the quantile of the observations between the scrapes; null: there was none. */
    quantile: (histogram: string, quantile: number): number | null => {
      const count = increase(`${histogram}_count`, {});
      if (before === null || count === 0) return null;
      const bounds = (now.samples.get(`${histogram}_bucket`) ?? []).map(({ labels }) => labels['le'] ?? '');
      const bound = bounds.find((le) => increase(`${histogram}_bucket`, { le }) >= quantile * count);
      return bound === undefined || bound === '+Inf' ? Number.POSITIVE_INFINITY : Number(bound);
    },
  };
}

function matches({ labels }: Sample, wanted: Labels): boolean {
  return Object.entries(wanted).every(([name, value]) => labels[name] === value);
}

function keyOf({ labels }: Sample): string {
  return JSON.stringify(labels);
}

import { Gauge, type Registry } from 'prom-client';

/** Registers a gauge. `value` is called when the metrics are collected. */
export type AddGauge = (name: string, help: string, value: () => number | Promise<number>) => void;

/** Adds gauges to a registry. */
export function gaugesOf(registry: Registry): AddGauge {
  return (name, help, value) => {
    const gauge = new Gauge({
      name,
      help,
      registers: [],
      async collect() {
        this.set(await value());
      },
    });
    registry.registerMetric(gauge);
  };
}

/** Label values of a time series, and its value. */
type Series<Label extends string> = readonly [Record<Label, string>, number];

/**
 * Registers a gauge whose time series, by these labels, are determined anew each time the metrics are collected: those that
 * `series` does not return end.
 */
export function addSeries<Label extends string>(
  registry: Registry,
  [name, help]: readonly [name: string, help: string],
  labelNames: readonly Label[],
  series: () => readonly Series<Label>[] | Promise<readonly Series<Label>[]>,
): void {
  const gauge = new Gauge({
    name,
    help,
    labelNames: [...labelNames],
    registers: [],
    async collect() {
      const current = await series();
      this.reset();
      for (const [labels, value] of current) this.set(labels, value);
    },
  });
  registry.registerMetric(gauge);
}

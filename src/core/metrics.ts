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

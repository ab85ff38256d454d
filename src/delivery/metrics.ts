import { Counter, Gauge, type Registry } from 'prom-client';
import { gaugesOf } from '../core/metrics.ts';
import type { Delivery, DeliveryDeps } from './delivery.ts';
import type { Holds } from './holds.ts';

/** Registers the counter of outcomes; returns the function that counts one. */
export function registerOutcomeCounter(registry: Registry): NonNullable<DeliveryDeps['observe']> {
  const outcomes = new Counter({
    name: 'postrider_delivery_outcomes_total',
    help: 'Outcomes of delivery attempts.',
    labelNames: ['outcome'],
    registers: [registry],
  });
  return (outcome) => outcomes.inc({ outcome });
}

/** Registers the gauges of messages in delivery and of what stops them. */
export function registerDeliveryGauges(
  registry: Registry,
  delivery: Delivery,
  holds: Pick<Holds, 'count'>,
): void {
  const gauge = gaugesOf(registry);
  gauge('postrider_deliveries_in_flight', 'Messages that hold a connection slot.', delivery.inFlight);
  gauge(
    'postrider_delivery_bytes_in_flight',
    'Contents of those messages, in bytes, without the first 64 KB of each.',
    delivery.bytesInFlight,
  );
  gauge('postrider_delivery_unrecorded', '1 while outcomes cannot be recorded.', () =>
    delivery.unrecorded() === null ? 0 : 1,
  );
  gauge(
    'postrider_delivery_unreadable',
    'Queue keys that cannot be read and are retried later.',
    delivery.unreadable,
  );
  gauge(
    'postrider_queue_held_messages',
    'Messages held because their account is disabled or the verification of their domain has failed.',
    holds.count,
  );
  const parked = new Gauge({
    name: 'postrider_delivery_parked',
    help: 'Domains and accounts that are parked because their mail cannot be prepared.',
    labelNames: ['kind'],
    registers: [],
    collect() {
      for (const kind of ['domain', 'account'] as const) this.set({ kind }, delivery.parkedCount(kind));
    },
  });
  registry.registerMetric(parked);
}

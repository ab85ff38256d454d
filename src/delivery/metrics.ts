import { Counter, Gauge, type Registry } from 'prom-client';
import { addSeries, gaugesOf } from '../core/metrics.ts';
import { createTopLabels } from '../core/top-labels.ts';
import { CONTROL_SCOPES } from '../store/messages/queue-controls.ts';
import type { Delivery, DeliveryDeps } from './delivery.ts';
import type { Holds } from './holds.ts';
import { registerSiteMetrics, siteLabel } from './shaping/shaping.ts';
import type { WarmupUse } from './warmup.ts';

/** Sites with time series of their own: those with the most attempts. */
const MAX_SITES = 50;
/** Source addresses with problems, and those in warm-up, with time series of their own. */
const MAX_PROBLEMS = 50;
const MAX_WARMUPS = 50;
/** Suspended sites that are named. */
const MAX_SUSPENDED = 20;
const ATTEMPT_RESULTS = ['delivered', 'deferred', 'bounced'] as const;

/** Registers the counters of outcomes and of attempts by site; returns the functions that count. */
export function registerDeliveryCounters(
  registry: Registry,
  now: () => number = () => performance.now(),
): Required<Pick<DeliveryDeps, 'observe' | 'observeAttempt' | 'observeFailover'>> {
  const outcomes = new Counter({
    name: 'postrider_delivery_outcomes_total',
    help: 'Outcomes of delivery attempts.',
    labelNames: ['outcome'],
    registers: [registry],
  });
  for (const outcome of ['delivered', 'deferred', 'bounced', 'failed']) outcomes.inc({ outcome }, 0);
  const attempts = new Counter({
    name: 'postrider_site_attempts_total',
    help: `Delivery attempts by destination site (MX hosts or shaping profile, and egress pool) and result: the ${MAX_SITES} sites with the most, the rest as \`other\`.`,
    labelNames: ['site', 'result'],
    registers: [registry],
  });
  const sites = createTopLabels({
    max: MAX_SITES,
    now,
    onDropped: (site) => {
      for (const result of ATTEMPT_RESULTS) attempts.remove({ site, result });
    },
  });
  const laneAttempts = new Counter({
    name: 'postrider_lane_attempts_total',
    help: 'Delivery attempts by lane and result.',
    labelNames: ['lane', 'result'],
    registers: [registry],
  });
  const failovers = new Counter({
    name: 'postrider_lane_failovers_total',
    help: 'Messages that changed to the secondary lane, by cause (`listing`, `connection`), and those that stayed because of its cap (`capped`).',
    labelNames: ['cause'],
    registers: [registry],
  });
  for (const lane of ['primary', 'secondary'])
    for (const result of ATTEMPT_RESULTS) laneAttempts.inc({ lane, result }, 0);
  for (const cause of ['listing', 'connection', 'capped']) failovers.inc({ cause }, 0);
  return {
    observe: (outcome) => outcomes.inc({ outcome }),
    observeAttempt: (site, result, lane) => {
      attempts.inc({ site: sites.labelOf(siteLabel(site)), result });
      laneAttempts.inc({ lane, result });
    },
    observeFailover: (cause) => failovers.inc({ cause }),
  };
}

/** Registers the gauges of messages in delivery, of the workers, and of what stops messages. */
export function registerDeliveryGauges(
  registry: Registry,
  delivery: Delivery,
  holds: Pick<Holds, 'count'>,
): void {
  const gauge = gaugesOf(registry);
  gauge('postrider_deliveries_in_flight', 'Messages that hold a connection slot.', delivery.inFlight);
  gauge(
    'postrider_delivery_connections_limit',
    'Outbound sessions at most (`delivery.connections`).',
    delivery.maxConnections,
  );
  gauge(
    'postrider_delivery_bytes_in_flight',
    'Contents of those messages, in bytes, without the first 64 KB of each.',
    delivery.bytesInFlight,
  );
  gauge('postrider_delivery_unrecorded', '1 while outcomes cannot be recorded.', () =>
    delivery.waits.unrecorded() === null ? 0 : 1,
  );
  gauge('postrider_delivery_stalled', '1 while the queue is not read.', () =>
    delivery.waits.stalled() === null ? 0 : 1,
  );
  gauge(
    'postrider_delivery_unreadable',
    'Queue keys that cannot be read and are retried later.',
    delivery.waits.unreadableKeys,
  );
  gauge(
    'postrider_queue_held_messages',
    'Messages held because their account is disabled or the verification of their domain has failed.',
    holds.count,
  );
  gauge('postrider_delivery_sites', 'Destination sites in memory.', delivery.waits.siteCount);
  gauge(
    'postrider_delivery_suspended_sites',
    'Sites to which no mail is sent for a while because their hosts cannot be reached.',
    () => delivery.waits.suspendedSites().length,
  );
  addSeries(
    registry,
    [
      'postrider_delivery_site_suspended_seconds',
      `Time until a suspended site is probed: the ${MAX_SUSPENDED} with the longest.`,
    ],
    ['site'],
    () =>
      delivery.waits
        .suspendedSites()
        .toSorted((a, b) => b.ms - a.ms)
        .slice(0, MAX_SUSPENDED)
        .map(({ site, ms }) => [{ site: siteLabel(site) }, ms / 1000]),
  );
  registerSiteMetrics(registry, delivery.waits.siteLimits);
  addSeries(
    registry,
    [
      'postrider_egress_problems',
      `1 for each source address that cannot be used (provider \`all\`) or that a provider refuses: at most ${MAX_PROBLEMS}.`,
    ],
    ['entry', 'provider'],
    () =>
      delivery.waits
        .egressProblems()
        .slice(0, MAX_PROBLEMS)
        .map(({ entry, provider }) => [{ entry, provider: provider ?? 'all' }, 1]),
  );
  addSeries(
    registry,
    [
      'postrider_source_address_blocked',
      `1 for each source address that a receiver blocks, so that its mail waits: at most ${MAX_PROBLEMS}.`,
    ],
    ['address', 'receiver'],
    () =>
      delivery.waits
        .addressBlocks()
        .slice(0, MAX_PROBLEMS)
        .map(({ address, receiver }) => [{ address, receiver: siteLabel(receiver) }, 1]),
  );
  const warmup = (name: string, help: string, value: (row: WarmupUse) => number) =>
    addSeries(registry, [name, help], ['entry', 'provider'], () =>
      delivery
        .warmupUse()
        .slice(0, MAX_WARMUPS)
        .map((row) => [{ entry: row.entry, provider: row.provider }, value(row)]),
    );
  warmup(
    'postrider_warmup_used',
    `Messages of today (UTC) from source addresses in warm-up, by provider: the ${MAX_WARMUPS} with the most.`,
    ({ used }) => used,
  );
  warmup('postrider_warmup_limit', 'Limit of the same addresses and providers for today.', ({ cap }) => cap);
  const controls = new Gauge({
    name: 'postrider_queue_controls',
    help: 'Controls of the operator in force: pauses by scope, and destinations whose mail is rejected.',
    labelNames: ['action', 'scope'],
    registers: [],
    collect() {
      this.reset();
      for (const scope of CONTROL_SCOPES) this.set({ action: 'pause', scope }, 0);
      this.set({ action: 'bounce', scope: 'destination' }, 0);
      for (const { action, scope } of delivery.waits.controls()) this.inc({ action, scope });
    },
  });
  registry.registerMetric(controls);
  const busy = new Counter({
    name: 'postrider_delivery_worker_busy_seconds_total',
    help: 'Time for which the event loop of a delivery worker was busy. Its rate is the utilization of the worker, from 0 to 1.',
    labelNames: ['worker'],
    registers: [],
    collect() {
      this.reset();
      for (const [worker, ms] of delivery.workerBusyMs().entries())
        this.inc({ worker: String(worker) }, ms / 1000);
    },
  });
  registry.registerMetric(busy);
  addSeries(
    registry,
    [
      'postrider_delivery_parked',
      'Domains and accounts that are parked because their mail cannot be prepared.',
    ],
    ['kind'],
    () => (['domain', 'account'] as const).map((kind) => [{ kind }, delivery.waits.parkedCount(kind)]),
  );
}

import { DAY, iso } from '../core/clock.ts';
import { createLog } from '../core/log.ts';
import { providerOf } from '../mail/providers.ts';
import type { Context } from '../store/context.ts';
import { emptyCounts } from '../store/egress/egress-counts.ts';
import type { EgressHealthRow, EgressWarmupRow } from '../store/egress/egress-health.ts';
import type { QueuedMessage } from '../store/messages/queue.ts';
import type { Tables } from '../store/tables.ts';
import { presentBlock } from './address-health.ts';
import { addressOf, createEgressPools, type EgressEntry, type WarmupSetting } from './egress-pools.ts';
import { createDeliveryPaths, type PathMessage } from './lanes.ts';
import { routeFor } from './routes.ts';
import { createEgress, type EgressObstacle } from './source-address.ts';
import { dayOf, MAX_PROVIDERS, storedPosition } from './warmup.ts';

/** The row of all providers that have none of their own. */
export const OTHER_PROVIDERS = '*';

type OverviewContext = Pick<Context, 'config'> & {
  tables: Pick<Tables, 'egressCounts' | 'egressWarmup' | 'egressHealth'>;
};

/**
 * The source addresses as they are stored: for commands, which run in another process than the daemon. Reads the tables at
 * each call, for entries with a name only. Warm-ups have a row for each provider with counts of today or yesterday (UTC) or
 * with a step back, and one for `OTHER_PROVIDERS`. `refused`: all refusals, also those of the address that the system
 * chooses.
 */
export function egressOverview(context: OverviewContext, now: number) {
  const { config, tables } = context;
  const steps = tables.egressWarmup.all();
  const refusals = tables.egressHealth.all();
  const all = createEgressPools(config).all();
  const overviews = all.flatMap((entry, index) => {
    const { name, address, address6, hostname, proxy, warmup: setting } = entry;
    if (name === null) return [];
    const counts = tables.egressCounts.ofDay(dayOf(now), name, MAX_PROVIDERS + 1);
    const sum = (valueOf: (row: (typeof counts)[number]) => number) =>
      counts.reduce((total, row) => total + valueOf(row), 0);
    const warmup = setting === undefined ? [] : warmupRows(context, now, { entry, name, setting }, steps);
    const overview = {
      entry: name,
      /** Source address that receivers see. */
      address: addressOf(entry),
      address6: address6 === undefined || address === undefined ? null : address6,
      hostname,
      pools: config.delivery.egress[index]?.pools ?? [],
      proxy: proxy === undefined ? null : `${proxy.host}:${proxy.port}`,
      /** `day 4 of 30`, `finished`; null: no warm-up. */
      warmup: setting === undefined ? null : stateOf(warmup, setting),
      /** Messages of today (UTC). */
      today: {
        sent: sum((row) => row.transactional + row.marketing),
        delivered: sum((row) => row.delivered),
        throttled: sum((row) => row.throttled),
        refused: sum((row) => row.refused),
        complained: sum((row) => row.complained),
      },
      refusedBy: refusals.filter((row) => row.entry === name).map(toRefusal),
    };
    return [{ overview, warmup }];
  });
  const refused = refusals.map((row) => {
    const { address, delisting } = presentBlock(config, row);
    return { ...toRefusal(row), address, delisting };
  });
  return {
    entries: overviews.map(({ overview }) => overview),
    warmup: overviews.flatMap(({ warmup }) => warmup),
    refused,
  };
}

/** A receiver that refuses a source address. Times are ISO 8601. `blocked`: mail that only this address can send waits. */
function toRefusal({ provider, since, probe_at, failures, reply, blocked }: EgressHealthRow) {
  const times = { since: iso(since), nextProbeAt: iso(probe_at) };
  return { provider, ...times, failures, reply, blocked: blocked === 1 };
}

export type WarmupRow = ReturnType<typeof warmupRows>[number];

/** The providers of today and yesterday and those with a step back, by name; then all others. */
function warmupRows(
  context: OverviewContext,
  now: number,
  { entry, name, setting }: { entry: EgressEntry; name: string; setting: WarmupSetting },
  steps: readonly EgressWarmupRow[],
) {
  const countsOf = (day: number) => context.tables.egressCounts.ofDay(day, name, MAX_PROVIDERS + 1);
  const today = new Map(countsOf(dayOf(now)).map((row) => [row.provider, row]));
  const known = new Set([
    ...today.keys(),
    ...countsOf(dayOf(now) - DAY).map((row) => row.provider),
    ...steps
      .filter((row) => row.entry === name && row.started === setting.started && row.provider !== '')
      .map((row) => row.provider),
  ]);
  return [...[...known].toSorted(), OTHER_PROVIDERS].map((provider) => {
    const { transactional, marketing, throttled, refused, complained } = today.get(provider) ?? emptyCounts();
    const { reason, ...position } = storedPosition(context, name, setting, provider, now);
    return {
      entry: name,
      address: addressOf(entry),
      /** `*`: all providers without a row. */
      provider,
      ...position,
      /** Messages of today (UTC): transactional and marketing together. */
      used: transactional + marketing,
      transactional,
      throttled,
      refused,
      complained,
      reason,
    };
  });
}

function stateOf(rows: readonly WarmupRow[], { days }: WarmupSetting): string {
  if (rows.every(({ cap }) => cap === null)) return 'finished';
  const { day } = rows.at(-1) ?? { day: 0 };
  return day === 0 ? 'not begun' : `day ${Math.min(day, days)} of ${days}`;
}

/**
 * The source address or the ramp of a new sender that a ready message waits for, according to the database: for commands,
 * which run in another process than the daemon. The provider is that of the recipient's domain: without its MX hosts that
 * of a hosted domain is not known. Null: it waits for none that is known.
 */
export function storedObstacle(
  context: Pick<Context, 'config' | 'tables' | 'writer' | 'clock'>,
  message: PathMessage & Pick<QueuedMessage, 'account_id' | 'destination' | 'priority'>,
): EgressObstacle | null {
  const { config, clock } = context;
  const pools = createEgressPools(config);
  const log = createLog({ level: 'silent', hashAddresses: true });
  const proxies = { isResolved: () => true };
  const egress = createEgress({ ...context, monotonic: clock, log }, { pools, proxies });
  const { destination, priority } = message;
  const { pool, via } = createDeliveryPaths(context, pools).of(message);
  const route = via ?? routeFor(config.delivery.routes, destination);
  const provider = route === null ? providerOf(destination) : null;
  return egress.obstacle(pool, { provider, priority, hosts: [], sender: message });
}

import type { Config } from '../../../src/config/schema.ts';
import type { Clock } from '../../../src/core/clock.ts';
import { createExpiryClock } from '../../../src/core/expiry-clock.ts';
import { createIds } from '../../../src/core/ids.ts';
import { createLog } from '../../../src/core/log.ts';
import { systemRandom } from '../../../src/core/random.ts';
import { createAttemptResults } from '../../../src/delivery/attempt-result.ts';
import type { ControlIndex } from '../../../src/delivery/control.ts';
import { createDeliveries } from '../../../src/delivery/deliver.ts';
import { createEgressPools } from '../../../src/delivery/egress-pools.ts';
import { createDeliveryPaths } from '../../../src/delivery/lanes.ts';
import { createRecording } from '../../../src/delivery/recording.ts';
import type { RouteResult } from '../../../src/delivery/routes.ts';
import { createClaims } from '../../../src/delivery/scheduling/claims.ts';
import { createDispatcher } from '../../../src/delivery/scheduling/dispatcher.ts';
import { createShares } from '../../../src/delivery/scheduling/shares.ts';
import { createTargets } from '../../../src/delivery/scheduling/targets.ts';
import { createShaping } from '../../../src/delivery/shaping/shaping.ts';
import { createEgress } from '../../../src/delivery/source-address.ts';
import { createWaits } from '../../../src/delivery/waits.ts';
import { createRecorder } from '../../../src/events/record.ts';
import type { Writer } from '../../../src/store/database/writer.ts';
import type { Tables } from '../../../src/store/tables.ts';
import { type createProviders, hostsOf, jobFor } from './providers.ts';

/**
 * The whole queue of the simulated month: the parts of the delivery with the clock of the simulation, over a real database.
 * `send` takes the place of the worker threads.
 */
export interface MonthQueue {
  /** Runs the scan until it starts nothing more. */
  drain(): Promise<void>;
  stop(): void;
}

export interface MonthQueueDeps {
  config: Config;
  clock: Clock;
  tables: Tables;
  writer: Writer;
  providers: Pick<ReturnType<typeof createProviders>, 'reply' | 'count'>;
}

const turn = () => new Promise(setImmediate);

export function createMonthQueue({ config, clock, tables, writer, providers }: MonthQueueDeps): MonthQueue {
  const recorder = createRecorder({ clock, ids: createIds(clock, systemRandom) });
  const log = createLog({ level: 'silent', hashAddresses: true });
  const pools = createEgressPools(config);
  const context = { config, clock, monotonic: clock, log, tables, writer };
  const egress = createEgress(context, { pools, proxies: { isResolved: () => true } });
  const shaping = createShaping(context, { idleConnections: Number.POSITIVE_INFINITY });
  const { sites, classify, feedback } = shaping;
  const waits = createWaits({ clock, monotonic: clock, log });
  const claims = createClaims(waits);
  const expiry = createExpiryClock(clock, clock);
  const recording = createRecording(
    { clock, monotonic: clock, expiry, log, tables, writer },
    { recorder, claims, generation: 1, sendingObstacle: () => null, observe: () => {} },
  );
  const results = createAttemptResults(
    { clock, expiry, random: systemRandom },
    { recorder, retry: config.delivery.retry },
  );
  const shares = createShares({ sessions: 400, bytes: 1e9 });
  const deliveries = createDeliveries(
    { clock, config, expiry, log },
    {
      recorder,
      results,
      classify,
      feedback,
      recording,
      claims,
      waits,
      egress,
      buildJob: ({ site, slot }, { message, hosts }, entry) =>
        jobFor(message.seq, message.recipient, `${site.number}:${slot}`, hosts, entry),
      pool: {
        send: async (_, job) => {
          const report = providers.reply(job);
          await turn();
          return { kind: 'report', report };
        },
        stop: async () => {},
      },
    },
  );
  const controls: ControlIndex = { ofKey: () => null, ofSite: () => null };
  const routes = {
    clear: () => {},
    get: (destination: string): RouteResult => ({
      kind: 'hosts',
      hosts: hostsOf(destination),
      route: null,
      ttl: 3600,
    }),
    peek: () => null,
  };
  const targets = createTargets(
    { monotonic: clock },
    { sites, routes, pools, egress, paths: createDeliveryPaths(context, pools), controls },
  );
  const dispatcher = createDispatcher(
    { clock, monotonic: clock, expiry, log, tables, writer },
    {
      sites,
      targets,
      pools,
      controls,
      claims,
      waits,
      rates: { waitMs: () => 0, take: () => {}, mayLimit: () => false },
      deliveries,
      recording,
      generation: 1,
      shares,
      mayStart: () => true,
    },
  );
  dispatcher.start();

  const drain = async () => {
    for (let seen = -1; seen !== providers.count(); ) {
      seen = providers.count();
      await egress.refresh();
      await dispatcher.scan();
      do {
        for (let n = 0; n < 3; n++) await turn();
        // A commit has passed.
        await writer.run(() => undefined);
      } while (shares.sessions() > 0 || recording.pending() > 0);
    }
  };
  return { drain, stop: dispatcher.stop };
}

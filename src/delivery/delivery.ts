import { iso, SECOND } from '../core/clock.ts';
import { createLoop } from '../core/concurrency/loop.ts';
import { openFilesLimit } from '../core/open-files.ts';
import type { Resolver } from '../dns/resolver.ts';
import type { Obstacle } from '../events/event-types.ts';
import type { Recorder } from '../events/record.ts';
import { createSendingRates, type SendingRates } from '../reputation/sending-rates.ts';
import type { Context } from '../store/context.ts';
import type { MessageRow } from '../store/messages/messages.ts';
import type { Tables } from '../store/tables.ts';
import { createAttemptResults, type DeliveryOutcome } from './attempt-result.ts';
import { createQueueRebase } from './clock-jumps.ts';
import { createControls } from './control.ts';
import { createDeliveries, type ObserveAttempt } from './deliver.ts';
import { createEgressPools } from './egress-pools.ts';
import { createDeliveryPaths, createFailover, type ObserveFailover, reportFailover } from './lanes.ts';
import { createJobBuilder, type Prepare, type RoutePasswords, type SignersOf } from './prepare.ts';
import { createEgressProxies, type ProxyPasswords, readProxyPasswords } from './proxies.ts';
import { createRecording } from './recording.ts';
import { createRouteCache } from './route-cache.ts';
import { createRouteFinder } from './routes.ts';
import { createClaims } from './scheduling/claims.ts';
import { createDispatcher, SCAN_INTERVAL_MS } from './scheduling/dispatcher.ts';
import { createShares, defaultConnections } from './scheduling/shares.ts';
import { createTargets } from './scheduling/targets.ts';
import { createShaping } from './shaping/shaping.ts';
import { createEgress } from './source-address.ts';
import type { TlsSystem } from './tls-system.ts';
import { createInspection, createWaits } from './waits.ts';
import { createWorkerPool } from './worker-pool.ts';

/*
 * Delivers the mail in the queue. A message is delivered at least once: it is sent twice only if the destination's 250 is
 * lost with the connection, or by a crash before the commit of that outcome.
 *
 * The modules, in the order in which they are best read:
 *
 *   control         the operator's pauses and rejections
 *   waits           why mail waits: the table of reasons, what waits in this process, and what reads it
 *   explain         explanations of waits, with the last replies and their remedies
 *   tls-policies    TLS policies of destinations: DANE; mta-sts: MTA-STS
 *   routes          MX hosts and addresses of destinations; egress-pools: source addresses
 *   lanes           the path of a message: lane, pool, next hop; change to the secondary lane
 *   source-address  which source address sends a message; warmup, address-health, proxies
 *   shaping/        limits in force at sites: profiles, limiter, feedback of replies, storage
 *   scheduling/     state: site (slots, backlog, suspension), shares, claims
 *   recording       leases messages, records their outcomes and returns them to the queue
 *   deliver         the path of a message that has a slot: job, lease, worker, result, outcome
 *   scheduling/     decisions: targets; dispatcher: what is read, and which message is sent next
 */

export type Delivery = ReturnType<typeof createDelivery>;

export interface DeliveryDeps
  extends Pick<
    Context,
    'config' | 'clock' | 'monotonic' | 'expiry' | 'random' | 'log' | 'tables' | 'writer'
  > {
  recorder: Recorder;
  resolver: Resolver;
  prepare: Prepare;
  signersOf: SignersOf;
  /** Null: the message may be sent. */
  sendingObstacle(tables: Tables, message: MessageRow): Obstacle | null;
  /** The automatic limits in force. Default: none. */
  sendingRates?: SendingRates;
  /** Number of this start of the daemon; every lease carries it. */
  generation: number;
  /** TLS policies of others. Default: they do not apply, and nothing is counted. */
  tls?: Pick<TlsSystem, 'policies' | 'reports' | 'observeSessions' | 'authorities'>;
  workerScript: URL;
  /** Called with the status of each recorded outcome, for metrics. */
  observe(status: DeliveryOutcome['status']): void;
  /** Called with the result of each session, for metrics. */
  observeAttempt?: ObserveAttempt | undefined;
  /** Called when a message changes to the secondary lane, or may not, for metrics. */
  observeFailover?: ObserveFailover | undefined;
  /** How long a stop may take. Default: 30 s. */
  graceMs?: number;
  /** Pause before an outcome is recorded again, ms. Default: 1 s, doubled up to 5 s. */
  firstRetryMs?: number;
}

const GRACE_MS = 30 * SECOND;
/** Time for recording the outcomes of sessions that ended at the end of the grace period. */
const LAST_OUTCOMES_MS = 2 * SECOND;
const HOUSEKEEPING_INTERVAL_MS = SECOND;

/**
 * Delivers the mail in the queue.
 *
 * Connects the modules and starts the worker threads; nothing is read or sent before `start`, and `stop` ends the
 * threads also without it. Throws an `OperatorFault` when a password file of a proxy or a route cannot be used.
 */
export function createDelivery(deps: DeliveryDeps) {
  const { monotonic, log, recorder } = deps;
  const config = deps.config.delivery;
  const connections = config.connections ?? defaultConnections(openFilesLimit());
  let stopping = false;

  const pools = createEgressPools(deps.config);
  const paths = createDeliveryPaths(deps, pools);
  const controls = createControls(deps, {
    onChange: () => dispatcher.readAgain(),
    onRetried: () => {
      for (const site of sites.all()) site.probeNow();
      rebase.release(egress.probeNow());
    },
  });
  const proxies = createEgressProxies(deps, {
    resolver: deps.resolver,
    passwords: readProxyPasswords(config.egress),
  });
  const egress = createEgress(deps, {
    pools,
    proxies,
    onRefused: (tx, { since, nextProbeAt, ...block }) =>
      recorder.operator(tx, 'source_address_blocked', {
        ...block,
        since: iso(since),
        nextProbeAt: iso(nextProbeAt),
      }),
  });
  const routes = createRouteCache(
    deps,
    createRouteFinder(deps, { resolver: deps.resolver, tlsPolicies: deps.tls?.policies }),
  );
  const shaping = createShaping(deps, {
    isPaused: (site) => controls.ofSite(site) !== null,
    idleConnections: connections,
  });
  const { sites, classify, feedback } = shaping;
  const waits = createWaits(deps);
  const claims = createClaims(waits);
  const rates = deps.sendingRates ?? createSendingRates(deps);
  const recording = createRecording(deps, {
    recorder,
    claims,
    generation: deps.generation,
    sendingObstacle: deps.sendingObstacle,
    observe: ({ status, failover }) => {
      deps.observe(status);
      if (failover !== undefined) reportFailover(failover, { log, observe: deps.observeFailover });
    },
    firstRetryMs: deps.firstRetryMs,
  });
  const failover = createFailover(deps);
  const results = createAttemptResults(deps, { recorder, retry: config.retry, failover });
  const { prepare, signersOf } = deps;
  const jobs = createJobBuilder(deps, { jobEgress: proxies.jobEgress, paths, prepare, signersOf });
  const shares = createShares({ sessions: connections, bytes: config.inFlightBytes });
  const pool = createWorkerPool(deps, {
    script: deps.workerScript,
    workers: config.workers,
    idleConnections: connections,
    authorities: deps.tls?.authorities,
  });
  const deliveries = createDeliveries(deps, {
    recorder,
    results,
    classify,
    feedback,
    recording,
    claims,
    waits,
    egress,
    buildJob: jobs.build,
    pool,
    observeAttempt: deps.observeAttempt,
    tls: deps.tls,
  });
  const targets = createTargets(deps, { sites, routes, pools, egress, paths, controls });
  const dispatcher = createDispatcher(deps, {
    sites,
    targets,
    pools,
    controls,
    claims,
    waits,
    rates,
    deliveries,
    recording,
    generation: deps.generation,
    shares,
    // A message whose outcome cannot be recorded would be sent again.
    mayStart: () => !stopping && recording.unrecorded() === null,
  });
  const rebase = createQueueRebase(deps, {
    // Read when it starts.
    maxWaitMs: config.retry.max,
    isStopping: () => stopping,
  });
  const scanLoop = createLoop({
    name: 'delivery-scan',
    run: dispatcher.scan,
    intervalMs: SCAN_INTERVAL_MS,
    log,
  });
  const housekeepingLoop = createLoop({
    name: 'delivery-housekeeping',
    run: async () => {
      pool.check();
      await recording.check();
      await shaping.write();
      if (egress.noticeChange()) rebase.release(egress.waitEnds());
      await rebase.run();
      // Not awaited: DNS queries that time out must not delay the rest.
      void proxies.refresh(pools.all());
      await egress.refresh();
    },
    intervalMs: HOUSEKEEPING_INTERVAL_MS,
    log,
  });

  const inspection = createInspection(deps, {
    waits,
    rates,
    sites,
    targets,
    controls,
    shares,
    connections,
    shaping,
    egress,
    recording,
    stalled: dispatcher.stalled,
  });

  return {
    /** Controls of the operator that are in force. */
    controls,
    /** Why mail waits, as far as only this process knows it. */
    waits: inspection,
    /** Drops what was read ahead, so that it is read again: messages were rerouted. */
    readAgain: (): void => dispatcher.readAgain(),
    start: (): void => {
      // Before anything is read: what was paused stays paused over a restart.
      controls.refresh();
      controls.start();
      recording.suspect();
      dispatcher.start();
      housekeepingLoop.start();
      scanLoop.start();
    },
    leaseNow: dispatcher.leaseNow,
    accepted: dispatcher.accepted,
    /** Announces new mail of a key in the queue (committed). */
    announce: dispatcher.request,
    /** The first outcome of a message; null after `ms` or when the signal aborts. Call before its delivery can begin. */
    firstOutcome: recording.firstOutcome,
    /** Messages that hold a slot. */
    inFlight: shares.sessions,
    /** Bytes of their contents that count toward the limit. */
    bytesInFlight: shares.bytes,
    /** Sessions at most. */
    maxConnections: (): number => connections,
    /** Milliseconds that each worker has been busy since its thread started. */
    workerBusyMs: pool.busyMs,
    unscannedMs: dispatcher.unscannedMs,
    /** Warm-ups with a limit today, those with the most messages first. */
    warmupUse: egress.warmupUse,
    marketingLeft: egress.marketingLeft,
    /** Applies changed settings, which are in `config` already: no route that was found before is used again. */
    reload: (passwords: RoutePasswords, proxyPasswords: ProxyPasswords): void => {
      jobs.usePasswords(passwords);
      proxies.usePasswords(proxyPasswords);
      routes.clear();
      rebase.release(egress.waitEnds());
    },
    /**
     * Ends the sessions in progress and records their outcomes; the other messages stay in the queue. Resolves with the
     * number of outcomes that could not be recorded: those messages will be sent again.
     */
    stop: async (): Promise<number> => {
      const graceMs = deps.graceMs ?? GRACE_MS;
      const until = monotonic.now() + graceMs;
      stopping = true;
      dispatcher.stop();
      // The stop does not wait for a run in progress, which may move millions of rows and starts no delivery.
      void housekeepingLoop.stop();
      void scanLoop.stop();
      await controls.stop();
      await deliveries.stop(graceMs);
      const left = await recording.drain(Math.max(until, monotonic.now() + LAST_OUTCOMES_MS));
      await shaping.write();
      if (left > 0)
        log.error(
          { messages: left },
          'outcomes could not be recorded before the stop; these messages will be sent again after the next start',
        );
      return left;
    },
  };
}

import { Gauge, type Registry } from 'prom-client';
import { iso } from '../core/clock.ts';
import { createLoop } from '../core/concurrency/loop.ts';
import type { Log } from '../core/log.ts';
import { refuse } from '../core/refusal.ts';
import { presentControl } from '../delivery/control.ts';
import type { Delivery } from '../delivery/delivery.ts';
import type { Holds } from '../delivery/holds.ts';
import type { Pressure } from '../sending/pressure.ts';
import { storageFailure } from '../store/database/failure.ts';
import { mayReadMetrics } from './metrics.ts';
import { JSON_TYPE, refusalEnvelope, refusalResponse, successBody } from './responses.ts';
import type { HttpResponse, OpenRoute } from './route.ts';

/*
 * The state of the daemon: `/web-setup/health` for clients of the interface, `/healthz` (alive) and `/readyz` (can do its
 * work) for monitoring. Anyone may request them at any rate, so a check must be cheap. A check that writes is a probe,
 * which runs in the background.
 */

/** A check of `/readyz`. */
export interface ReadinessCheck {
  /** `database`, `queue`. */
  name: string;
  /** Null when the check passes, else the reason of the failure. */
  check: () => Promise<string | null> | string | null;
  /**
   * Facts for the operator that do not fail the check, such as parked domains; null: none. Shown to callers who may
   * read `/metrics`.
   */
  details?: () => Record<string, unknown> | null;
}

export interface ReadinessResult {
  check: string;
  ok: boolean;
  message?: string;
  details?: Record<string, unknown>;
}

/** The parts of the daemon that the checks examine; null: the listener is off. */
export interface ExaminedParts {
  database: Pick<Probe, 'check'>;
  pressure: Pick<Pressure, 'refusal'>;
  waits: Pick<
    Delivery['waits'],
    'stalled' | 'parked' | 'slowSites' | 'unrecorded' | 'egressProblems' | 'addressBlocks' | 'controls'
  >;
  holds: Pick<Holds, 'count'>;
  public: BoundListener;
  mx: BoundListener | null;
  submission: BoundListener | null;
  /** What a restore holds. */
  held(): { messages: number; webhookDeliveries: number };
  /** Null: no backups are scheduled. */
  backups: { status(): object; overdue(): string | null } | null;
}

interface BoundListener {
  address(): object | null;
}

const MAX_LISTED_CONTROLS = 100;

/** What `/readyz` examines. */
export function readinessChecks(parts: ExaminedParts): ReadinessCheck[] {
  const { database, pressure, waits, holds } = parts;
  const listening = (name: 'public' | 'mx' | 'submission'): ReadinessCheck => ({
    name,
    check: () => (parts[name]?.address() === null ? 'the listener is not up' : null),
  });
  const { backups } = parts;
  return [
    { name: 'database', check: database.check },
    { name: 'sends', check: () => pressure.refusal()?.message ?? null },
    {
      name: 'queue',
      check: waits.stalled,
      details: () => {
        const parked = waits.parked();
        const sinceRestore = parts.held();
        const isRestored = sinceRestore.messages > 0 || sinceRestore.webhookDeliveries > 0;
        const held = holds.count();
        const slowSites = waits.slowSites();
        const egress = waits.egressProblems();
        const blocked = waits.addressBlocks().map(({ since, nextProbeAt, ...block }) => ({
          ...block,
          since: iso(since),
          nextProbeAt: iso(nextProbeAt),
        }));
        const controls = waits.controls().slice(0, MAX_LISTED_CONTROLS).map(presentControl);
        const details = {
          ...(parked.length === 0 ? {} : { parked }),
          ...(held === 0 ? {} : { held }),
          ...(slowSites.length === 0 ? {} : { slowSites }),
          ...(controls.length === 0 ? {} : { controls }),
          ...(isRestored ? { heldSinceRestore: sinceRestore } : {}),
          ...(egress.length === 0 ? {} : { egress }),
          ...(blocked.length === 0 ? {} : { blocked }),
        };
        return Object.keys(details).length === 0 ? null : details;
      },
    },
    { name: 'outcomes', check: waits.unrecorded },
    listening('public'),
    listening('mx'),
    listening('submission'),
    // A single failure is in the details, the log and a metric; it is repeated before the backup is overdue.
    ...(backups === null
      ? []
      : [{ name: 'backup', check: backups.overdue, details: () => ({ ...backups.status() }) }]),
  ];
}

export interface HealthOptions {
  checks: readonly ReadinessCheck[];
  log: Log;
  metricsKey(): string | undefined;
}

/**
 * `/web-setup/health`, `/healthz` and `/readyz`, without a key. Each request for `/readyz` runs all checks at the same
 * time; `metricsKey` is read at each request.
 */
export function healthRoutes({ checks, log, metricsKey }: HealthOptions): OpenRoute[] {
  return [
    {
      path: '/web-setup/health',
      operationId: 'getHealth',
      tag: 'Operations',
      summary: 'Check that the API responds',
      responses: {
        200: { description: 'The API responds.', contentType: 'application/json', example: HEALTH },
      },
      handle: () => json(HEALTH),
    },
    {
      path: '/healthz',
      operationId: 'getAlive',
      tag: 'Operations',
      summary: 'Check that the process is alive',
      responses: {
        200: { description: 'The process is alive.', contentType: 'application/json', example: HEALTH },
      },
      handle: () => json(HEALTH),
    },
    {
      path: '/readyz',
      operationId: 'getReady',
      tag: 'Operations',
      summary: 'Check that the daemon can do its work',
      description:
        'Checks that the database accepts writes, sends are accepted, outcomes are recorded, the queue advances, the listeners are up and no scheduled backup is overdue. A 503 names the checks that failed. `details` of a check are shown to callers who may read `/metrics`. A balancer, which needs to know whether the daemon takes mail, requests `/readyz?exclude=backup`.',
      query: { exclude: 'Names of checks that do not fail the request, separated by commas.' },
      responses: {
        200: {
          description: 'All checks pass.',
          contentType: 'application/json',
          example: { success: true, data: { status: 'ready', checks: [{ check: 'database', ok: true }] } },
        },
      },
      handle: async (request) => {
        const withDetails = mayReadMetrics(request, metricsKey());
        const results = await readiness(checks, withDetails, log);
        const excluded = new Set(request.query.get('exclude')?.split(','));
        const failed = results.filter(({ check, ok }) => !ok && !excluded.has(check));
        return failed.length === 0
          ? {
              status: 200,
              contentType: JSON_TYPE,
              body: successBody({ status: 'ready', checks: results }, []),
            }
          : notReady(results, failed, request.requestId);
      },
    },
  ];
}

export const HEALTH = { success: true, data: { status: 'ok' }, status: 'ok' };

/** Which installation this daemon belongs to, for the daemons in `standby.peers`. */
export function instanceRoute(instance: { instanceId: string; generation: number }): OpenRoute {
  const body = successBody({ instanceId: instance.instanceId, generation: instance.generation }, []);
  return {
    path: '/instance',
    operationId: 'getInstance',
    tag: 'Operations',
    summary: 'Get the instance and generation of the daemon',
    description:
      'Daemons with the same instance have copies of one database; the highest generation is the primary.',
    responses: {
      200: {
        description: 'The instance.',
        contentType: 'application/json',
        example: {
          success: true,
          data: { instanceId: '0198e0a4-7c2e-7b51-9d53-3f0c1a6be2d4', generation: 12 },
        },
      },
    },
    handle: () => ({ status: 200, contentType: JSON_TYPE, body }),
  };
}

function json(value: object): HttpResponse {
  return { status: 200, contentType: JSON_TYPE, body: JSON.stringify(value) };
}

/** Runs the checks; never rejects. */
export function readiness(
  checks: readonly ReadinessCheck[],
  withDetails: boolean,
  log: Log,
): Promise<ReadinessResult[]> {
  return Promise.all(checks.map((check) => resultOf(check, withDetails, log)));
}

/** Registers the results of the checks as a gauge: alerts need no request that fails. */
export function registerReadiness(registry: Registry, checks: readonly ReadinessCheck[], log: Log): void {
  const ready = new Gauge({
    name: 'postrider_ready',
    help: '1 while the check of /readyz passes, else 0.',
    labelNames: ['check'],
    registers: [],
    async collect() {
      for (const { check, ok } of await readiness(checks, false, log)) this.set({ check }, ok ? 1 : 0);
    },
  });
  registry.registerMetric(ready);
}

/** The failed checks, as `sends: the disk is nearly full`. */
export async function failedChecks(checks: readonly ReadinessCheck[], log: Log): Promise<string[]> {
  const results = await readiness(checks, false, log);
  return results.flatMap(({ check, ok, message = '' }) => (ok ? [] : [`${check}: ${message}`]));
}

async function resultOf(
  { name, check, details }: ReadinessCheck,
  withDetails: boolean,
  log: Log,
): Promise<ReadinessResult> {
  try {
    const fault = await check();
    const facts = withDetails ? (details?.() ?? null) : null;
    return {
      check: name,
      ok: fault === null,
      ...(fault === null ? {} : { message: fault }),
      ...(facts === null ? {} : { details: facts }),
    };
  } catch (error) {
    // A check that throws counts as failed; the log has the error.
    log.error({ err: error, check: name }, 'readiness check failed');
    return { check: name, ok: false, message: BROKEN_CHECK };
  }
}

const BROKEN_CHECK = 'the check itself failed; see the log';

/** The error envelope with the results of all checks in `data`. */
export function notReady(
  results: ReadinessResult[],
  failed: ReadinessResult[],
  requestId: string,
): HttpResponse {
  const refusal = refuse('UNAVAILABLE', `Not ready: ${failed.map(({ check }) => check).join(', ')}`, {
    details: failed.map(({ check, message = '' }) => ({ field: check, message })),
  });
  const data = { status: 'not ready', checks: results };
  const body = JSON.stringify({ ...refusalEnvelope(refusal, requestId), data });
  return { ...refusalResponse(refusal, requestId), body };
}

export type Probe = ReturnType<typeof createProbe>;

export interface ProbeOptions {
  /** For the log. */
  name: string;
  log: Log;
  /** Rejects when the probed operation fails. */
  run(): Promise<unknown>;
  /** Pause between two runs. */
  intervalMs?: number;
  /** A run that takes longer than this fails the check. */
  overdueMs?: number;
  /** Monotonic milliseconds. */
  now?(): number;
}

const PROBE_INTERVAL_MS = 5000;
const PROBE_OVERDUE_MS = 10_000;

/**
 * A check that a background loop carries out. Runs nothing before `start`; until then `check` passes. A run begins 5 s after
 * the previous one has ended, and fails the check once it takes 10 s. `stop` does not wait for it.
 */
export function createProbe(options: ProbeOptions) {
  const { name, log, intervalMs = PROBE_INTERVAL_MS, overdueMs = PROBE_OVERDUE_MS } = options;
  const now = options.now ?? (() => performance.now());
  let fault: string | null = null;
  let runningSince: number | null = null;
  let onFirstRun = () => {};
  const loop = createLoop({
    name: `readiness-${name}`,
    intervalMs,
    log,
    run: async () => {
      runningSince = now();
      try {
        await options.run();
        fault = null;
      } catch (error) {
        fault = storageFailure(error)?.reason ?? BROKEN_CHECK;
        throw error;
      } finally {
        runningSince = null;
        onFirstRun();
      }
    },
  });

  /** How long the run in progress has lasted, ms; 0: none is in progress. */
  const pendingMs = (): number => (runningSince === null ? 0 : now() - runningSince);
  return {
    pendingMs,
    /** The last result. */
    check: (): string | null => {
      const seconds = Math.round(pendingMs() / 1000);
      return seconds * 1000 >= overdueMs ? `no response for ${seconds} s` : fault;
    },
    /** Starts the loop; resolves after its first run. */
    start: () =>
      new Promise<void>((resolve) => {
        onFirstRun = resolve;
        loop.start();
      }),
    // A run that hangs must not delay the stop of the daemon.
    stop: () => void loop.stop(),
  };
}

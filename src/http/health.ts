import type { Log } from '../core/log.ts';
import { createLoop } from '../core/loop.ts';
import { refuse } from '../core/refusal.ts';
import type { Delivery } from '../delivery/delivery.ts';
import type { Pressure } from '../sending/pressure.ts';
import { storageFailure } from '../store/failure.ts';
import { mayReadMetrics } from './metrics.ts';
import { JSON_TYPE, refusalEnvelope, refusalResponse, successBody } from './responses.ts';
import type { OpenResponse, OpenRoute } from './route.ts';

/**
 * The state of the daemon: `/web-setup/health` for clients of the interface, `/healthz` (alive) and `/readyz` (can
 * do its work) for monitoring. Anyone may request them at any rate, so a check is cheap; a check that has to write
 * is a probe, which runs in the background.
 */
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
export interface ReadinessDeps {
  database: Pick<Probe, 'check'>;
  pressure: Pick<Pressure, 'refusal'>;
  delivery: Pick<Delivery, 'stalled' | 'parked' | 'unrecorded'>;
  public: BoundListener;
  mx: BoundListener | null;
  submission: BoundListener | null;
}

interface BoundListener {
  address(): object | null;
}

/** What `/readyz` examines. */
export function readinessChecks(deps: ReadinessDeps): ReadinessCheck[] {
  const { database, pressure, delivery } = deps;
  const listening = (name: 'public' | 'mx' | 'submission'): ReadinessCheck => ({
    name,
    check: () => (deps[name]?.address() === null ? 'the listener is not up' : null),
  });
  return [
    { name: 'database', check: database.check },
    { name: 'sends', check: () => pressure.refusal()?.message ?? null },
    {
      name: 'queue',
      check: delivery.stalled,
      details: () => {
        const parked = delivery.parked();
        return parked.length === 0 ? null : { parked };
      },
    },
    { name: 'outcomes', check: delivery.unrecorded },
    listening('public'),
    listening('mx'),
    listening('submission'),
  ];
}

export interface HealthOptions {
  checks: readonly ReadinessCheck[];
  log: Log;
  metricsKey(): string | undefined;
}

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
        'Checks that the database takes writes, sends are accepted, outcomes are recorded, the queue advances and the listeners are up. A 503 names the checks that failed. `details` of a check are shown to callers who may read `/metrics`.',
      responses: {
        200: {
          description: 'All checks pass.',
          contentType: 'application/json',
          example: { success: true, data: { status: 'ready', checks: [{ check: 'database', ok: true }] } },
        },
      },
      handle: async (request) => {
        const withDetails = mayReadMetrics(request, metricsKey());
        const results = await Promise.all(checks.map((check) => resultOf(check, withDetails, log)));
        const failed = results.filter(({ ok }) => !ok);
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

function json(value: object): OpenResponse {
  return { status: 200, contentType: JSON_TYPE, body: JSON.stringify(value) };
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
): OpenResponse {
  const refusal = refuse('UNAVAILABLE', `Not ready: ${failed.map(({ check }) => check).join(', ')}`, {
    details: failed.map(({ check, message = '' }) => ({ field: check, message })),
  });
  const { status, contentType, headers } = refusalResponse(refusal, requestId);
  const data = { status: 'not ready', checks: results };
  return {
    status,
    contentType,
    headers,
    body: JSON.stringify({ ...refusalEnvelope(refusal, requestId), data }),
  };
}

/** A check that a background loop carries out; `check` returns its last result. */
export interface Probe {
  check(): string | null;
  /** Starts the loop; resolves after its first run. */
  start(): Promise<void>;
  stop(): void;
}

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

export function createProbe(options: ProbeOptions): Probe {
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

  return {
    check: () => {
      const seconds = runningSince === null ? 0 : Math.round((now() - runningSince) / 1000);
      return seconds * 1000 >= overdueMs ? `no answer for ${seconds} s` : fault;
    },
    start: () =>
      new Promise((resolve) => {
        onFirstRun = resolve;
        loop.start();
      }),
    // A run that hangs must not delay the stop of the daemon.
    stop: () => void loop.stop(),
  };
}

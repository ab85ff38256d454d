import type { Log } from '../core/log.ts';
import { refuse } from '../core/refusal.ts';
import { storageFailure } from '../store/failure.ts';
import { JSON_TYPE, refusalEnvelope, refusalReply, successBody } from './answers.ts';
import { mayReadMetrics } from './metrics.ts';
import type { OpenRoute, Page } from './route.ts';

/**
 * The state of the daemon: `/web-setup/health` for clients of the interface, `/healthz` (alive) and `/readyz` (can
 * do its work) for monitoring. The checks themselves belong to the modules that they examine, and are cheap: anybody
 * may ask as often as they like, so a check that has to write is a probe.
 */
export interface ReadyCheck {
  /** `database`, `queue`. */
  name: string;
  /** Null when all is well, else what is wrong, in words. */
  check: () => Promise<string | null> | string | null;
  /**
   * Facts for the operator that do not fail the check (parked domains, say); null: none. Shown to callers who may
   * read `/metrics`.
   */
  details?: () => Record<string, unknown> | null;
}

export interface HealthCheckResult {
  check: string;
  ok: boolean;
  message?: string;
  details?: Record<string, unknown>;
}

export interface HealthOptions {
  checks: readonly ReadyCheck[];
  log: Log;
  metricsKey: string | undefined;
}

export function healthRoutes({ checks, log, metricsKey }: HealthOptions): OpenRoute[] {
  return [
    {
      path: '/web-setup/health',
      operationId: 'getHealth',
      tag: 'Operations',
      summary: 'Whether the interface answers',
      answers: { 200: { description: 'It does.', contentType: 'application/json', example: HEALTH } },
      visit: () => json(HEALTH),
    },
    {
      path: '/healthz',
      operationId: 'getAlive',
      tag: 'Operations',
      summary: 'Whether the process is alive',
      answers: { 200: { description: 'It is.', contentType: 'application/json', example: HEALTH } },
      visit: () => json(HEALTH),
    },
    {
      path: '/readyz',
      operationId: 'getReady',
      tag: 'Operations',
      summary: 'Whether the daemon can do its work',
      description:
        'Reports whether the database takes writes, sends are accepted, outcomes are recorded, the queue advances and the listeners are up; 503 names what is wrong. A check may carry `details`, shown to callers who may read `/metrics`.',
      answers: {
        200: {
          description: 'All is well.',
          contentType: 'application/json',
          example: { success: true, data: { status: 'ready', checks: [{ check: 'database', ok: true }] } },
        },
      },
      visit: async (visit) => {
        const withDetails = mayReadMetrics(visit, metricsKey);
        const results = await Promise.all(checks.map((check) => resultOf(check, withDetails, log)));
        const failed = results.filter(({ ok }) => !ok);
        return failed.length === 0
          ? {
              status: 200,
              contentType: JSON_TYPE,
              body: successBody({ status: 'ready', checks: results }, []),
            }
          : notReady(results, failed, visit.requestId);
      },
    },
  ];
}

export const HEALTH = { success: true, data: { status: 'ok' }, status: 'ok' };

function json(value: object): Page {
  return { status: 200, contentType: JSON_TYPE, body: JSON.stringify(value) };
}

async function resultOf(
  { name, check, details }: ReadyCheck,
  withDetails: boolean,
  log: Log,
): Promise<HealthCheckResult> {
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
    // A check that breaks is a fault of what it examines; the log has the details.
    log.error({ err: error, check: name }, 'readiness check failed');
    return { check: name, ok: false, message: BROKEN_CHECK };
  }
}

const BROKEN_CHECK = 'the check itself failed; see the log';

/** The error envelope, with the results of all checks beside it. */
export function notReady(results: HealthCheckResult[], failed: HealthCheckResult[], requestId: string): Page {
  const refusal = refuse('UNAVAILABLE', `not ready: ${failed.map(({ check }) => check).join(', ')}`, {
    details: failed.map(({ check, message = '' }) => ({ field: check, message })),
  });
  const { status, contentType, headers } = refusalReply(refusal, requestId);
  const data = { status: 'not ready', checks: results };
  return {
    status,
    contentType,
    headers,
    body: JSON.stringify({ ...refusalEnvelope(refusal, requestId), data }),
  };
}

/** A check that one background job carries out, every few seconds; callers of `check` read its last result. */
export interface Probe {
  check(): string | null;
  /** Resolves when it has run once. */
  start(): Promise<void>;
  stop(): void;
}

export interface ProbeOptions {
  /** For the log. */
  name: string;
  log: Log;
  /** Rejects when what it tries does not work. */
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
  let timer: NodeJS.Timeout | null = null;
  let stopped = false;

  async function run(): Promise<void> {
    runningSince = now();
    try {
      await options.run();
      if (fault !== null) log.info({ check: name }, 'readiness probe succeeds again');
      fault = null;
    } catch (error) {
      const reason = storageFailure(error)?.reason ?? BROKEN_CHECK;
      // Once for each reason, not for each run.
      if (reason !== fault && !stopped) log.error({ err: error, check: name }, 'readiness probe failed');
      fault = reason;
    } finally {
      runningSince = null;
      if (!stopped) timer = setTimeout(() => void run(), intervalMs).unref();
    }
  }

  return {
    check: () => {
      const seconds = runningSince === null ? 0 : Math.round((now() - runningSince) / 1000);
      return seconds * 1000 >= overdueMs ? `no answer for ${seconds} s` : fault;
    },
    start: run,
    stop: () => {
      stopped = true;
      if (timer !== null) clearTimeout(timer);
    },
  };
}

import type { Log } from '../core/log.ts';
import { refuse } from '../core/refusal.ts';
import { JSON_TYPE, successBody } from './answers.ts';
import type { OpenRoute, Page } from './route.ts';

/**
 * How the daemon is: `/web-setup/health` for clients of the interface, `/healthz` (alive) and `/readyz` (can
 * do its work) for whoever watches the machine. The checks themselves belong to the rooms they look at.
 */
export interface ReadyCheck {
  /** `database`, `queue`. */
  name: string;
  /** Null when all is well, else what is wrong, in words. */
  check: () => Promise<string | null> | string | null;
}

export function healthRoutes(checks: readonly ReadyCheck[], log: Log): OpenRoute[] {
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
      description: 'Looks at the database, the listeners and the queue; 503 names what is wrong.',
      answers: {
        200: {
          description: 'All is well.',
          contentType: 'application/json',
          example: { success: true, data: { status: 'ready', checks: [{ check: 'database', ok: true }] } },
        },
      },
      visit: async () => {
        const faults = await faultsOf(checks, log);
        if (faults.length > 0) {
          const names = faults.map(({ field }) => field).join(', ');
          return refuse('UNAVAILABLE', `not ready: ${names}`, { details: faults });
        }
        return {
          status: 200,
          contentType: JSON_TYPE,
          body: successBody(
            { status: 'ready', checks: checks.map(({ name }) => ({ check: name, ok: true })) },
            [],
          ),
        };
      },
    },
  ];
}

const HEALTH = { success: true, data: { status: 'ok' }, status: 'ok' };

function json(value: object): Page {
  return { status: 200, contentType: JSON_TYPE, body: JSON.stringify(value) };
}

async function faultsOf(
  checks: readonly ReadyCheck[],
  log: Log,
): Promise<{ field: string; message: string }[]> {
  const results = await Promise.all(
    checks.map(async ({ name, check }) => {
      try {
        const fault = await check();
        return fault === null ? null : { field: name, message: fault };
      } catch (error) {
        // A check that breaks is a fault of what it looks at; the log has the details.
        log.error({ err: error, check: name }, 'readiness check failed');
        return { field: name, message: 'the check itself failed; see the log' };
      }
    }),
  );
  return results.filter((fault) => fault !== null);
}

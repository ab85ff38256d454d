import type { Config } from '../config/schema.ts';
import { type Clock, SECOND } from '../core/clock.ts';
import type { Ids } from '../core/ids.ts';
import { refuse } from '../core/refusal.ts';
import type { Context } from '../store/context.ts';
import type { MigrationProgress } from '../store/migrate/migrate.ts';
import { SMALL_DATABASE_BYTES, schemaState, upgradeInThread } from '../store/migrate/upgrade.ts';
import { HEALTH, notReady } from './health.ts';
import { createListener, type HttpConnectionLimits } from './listener.ts';
import { JSON_TYPE, refusalResponse } from './responses.ts';
import type { HttpResponse } from './route.ts';
import { respondBeforeBody } from './unread-body.ts';

export interface StartupServerOptions {
  listen: Config['api']['listen'];
  ids: Ids;
  /** `the database is being migrated (copy postrider.db.new, 43 %)`. */
  state(): string;
}

const LIMITS: HttpConnectionLimits = {
  headersMs: 5000,
  requestMs: 5000,
  keepAliveMs: 1000,
  checkMs: 1000,
  connections: 256,
  headerBytes: 16 * 1024,
  writeStallMs: 5000,
};
const RETRY_AFTER_SECONDS = 30;

/**
 * Listens on `api.listen` while the database is being migrated: `/healthz` responds with 200, `/readyz` and everything
 * else with 503 and `Retry-After`. Request bodies are discarded, so that clients that are still sending read the response.
 *
 * Binds nothing before `listen`. `state` is called for each request. `close` ends all connections immediately, so that
 * the API can bind the same address.
 */
export function createStartupServer({ listen, ids, state }: StartupServerOptions) {
  const listener = createListener(listen, 'api.listen', LIMITS);
  listener.server.on('request', (request, response) => {
    const requestId = ids.uuid();
    const { status, contentType, headers, body } = replyTo(request.url ?? '', state(), requestId);
    response.writeHead(status, {
      ...headers,
      'Content-Type': contentType,
      'Content-Length': Buffer.byteLength(body),
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
      'X-Request-Id': requestId,
      Connection: 'close',
    });
    void respondBeforeBody(request, response, body);
  });
  return { listen: listener.listen, close: () => listener.close(0) };
}

function replyTo(url: string, message: string, requestId: string): HttpResponse {
  const [path] = url.split('?');
  if (path === '/healthz' || path === '/web-setup/health')
    return { status: 200, contentType: JSON_TYPE, headers: {}, body: JSON.stringify(HEALTH) };
  if (path === '/readyz') {
    const check = { check: 'database', ok: false, message };
    return { headers: {}, ...notReady([check], [check], requestId) };
  }
  const retryAfter = RETRY_AFTER_SECONDS;
  return refusalResponse(refuse('UNAVAILABLE', `Not ready: ${message}`, { retryAfter }), requestId);
}

const LOG_INTERVAL_MS = 10 * SECOND;

/**
 * Migrates a large database at the start of the daemon, which holds the daemon lock. Logs progress and responds to health
 * checks during the migration. Small databases are migrated when they are opened. `signal` ends the migration; the next start
 * begins again.
 */
export async function migrateAtStart(
  { config, ids, log, monotonic }: Pick<Context, 'config' | 'ids' | 'log' | 'monotonic'>,
  signal: AbortSignal | undefined,
): Promise<void> {
  const dataDir = config.data.dir;
  const { found, newest, bytes } = schemaState(dataDir);
  if (found === newest || bytes <= SMALL_DATABASE_BYTES) return;
  log.info({ schema: found, newSchema: newest, bytes }, 'migrating the database');
  const meter = createProgressMeter(monotonic);
  const server = createStartupServer({
    listen: config.api.listen,
    ids,
    state: () => `the database is being migrated (${meter.describe()})`,
  });
  await server.listen();
  const timer = setInterval(() => log.info(meter.fields(), 'migrating the database'), LOG_INTERVAL_MS);
  try {
    const result = await upgradeInThread(dataDir, {
      signal,
      onEstimate: ({ steps, neededBytes, freeBytes }) =>
        log.info({ steps, neededBytes, freeBytes }, 'migration estimated'),
      onProgress: meter.update,
    });
    log.info({ ...result, seconds: meter.seconds() }, 'database migrated');
  } finally {
    clearInterval(timer);
    await server.close();
  }
}

/** Share of the current step that is done; of the copy also the rate and the remaining time, which statements do not have. */
export function createProgressMeter(clock: Clock) {
  const began = clock.now();
  let current: MigrationProgress | null = null;
  let stepBegan = began;
  let doneBefore = 0;
  const seconds = () => Math.round((clock.now() - began) / SECOND);
  const percentOf = ({ done, total }: MigrationProgress) =>
    total === 0 ? 0 : Math.min(100, Math.floor((100 * done) / total));
  return {
    seconds,
    update: (progress: MigrationProgress): void => {
      if (progress.step !== current?.step) {
        stepBegan = clock.now();
        doneBefore = progress.done;
      }
      current = progress;
    },
    /** For the log. */
    fields: (): Record<string, unknown> => {
      if (current === null) return { step: 'estimate', seconds: seconds() };
      const { step, item, done, total } = current;
      const elapsed = (clock.now() - stepBegan) / SECOND;
      const perSecond = step === 'copy' && elapsed > 0 ? (done - doneBefore) / elapsed : 0;
      return {
        step,
        item,
        done,
        total,
        percent: percentOf(current),
        seconds: seconds(),
        ...(perSecond > 0
          ? { perSecond: Math.round(perSecond), secondsLeft: Math.ceil((total - done) / perSecond) }
          : {}),
      };
    },
    /** `copy postrider.db.new, 43 %`. */
    describe: (): string =>
      current === null ? 'estimate' : `${current.step} ${current.item}, ${percentOf(current)} %`,
  };
}

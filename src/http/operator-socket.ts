import { chmodSync, rmSync } from 'node:fs';
import { createServer, METHODS } from 'node:http';
import { join } from 'node:path';
import Koa from 'koa';
import type { Caller } from '../accounts/authenticate.ts';
import { OPERATOR_SOCKET } from '../config/data-files.ts';
import { eventLoopTurns } from '../core/concurrency/slices.ts';
import { errorText } from '../core/errors.ts';
import type { Context } from '../store/context.ts';
import { createBodyReader } from './body/body.ts';
import { createCallSignals } from './call-signals.ts';
import { createFront, refuseUnknownPath, respond } from './front.ts';
import { guardedHandler } from './guard.ts';
import { createInFlight } from './in-flight.ts';
import { pageKeysOf } from './page-keys.ts';
import type { Route } from './route.ts';
import { createRouter } from './router.ts';

const MAX_CONNECTIONS = 16;
const MAX_BODY_BYTES = 64 * 1024;
const REQUEST_TIMEOUT_MS = 30_000;
/** The caller of all operations, as records of changes name it. */
const CALLER = Object.freeze<Caller>({
  accountId: '',
  keyId: 'command line',
  scopes: ['operator'],
  allowIps: [],
  allowFrom: [],
  allowEssential: false,
  strictCompliance: false,
});

/**
 * Serves the operations with the scope `operator` on a UNIX socket in the data directory, for the command line on this
 * machine. Only the user of the daemon and root can open the socket (mode 0600 in a directory with mode 0700). Both can
 * read the database, so no key is required.
 *
 * Binds nothing before `listen`, which removes the socket that a killed daemon left: the caller holds the daemon lock.
 * Requests have no rate limit; at most 16 connections, bodies of 64 KiB. `routes`: all of the API.
 */
export function createOperatorSocket(
  { config, log, ids, writer, seal }: Pick<Context, 'config' | 'log' | 'ids' | 'writer' | 'seal'>,
  { routes }: { routes: readonly Route[] },
) {
  const path = join(config.data.dir, OPERATOR_SOCKET);
  const signals = createCallSignals();
  let stopping = false;
  const app = new Koa();
  app.on('error', (error) => log.debug({ err: error }, 'connection to the operator socket failed'));
  app.use(
    createFront({
      log,
      metrics: { observe: () => {} },
      callerAddressOf: () => ({ address: '127.0.0.1', forwarded: false }),
      isHostAllowed: () => true,
      isTrustedProxy: () => false,
      createRequestId: () => ids.uuid(),
      isStopping: () => stopping,
    }),
  );
  const guard = {
    authenticate: () => CALLER,
    rateLimits: { take: () => null, takeOfAccount: () => null, configure: () => {} },
    concurrencyOf: () => MAX_CONNECTIONS,
    inFlight: createInFlight(),
    pageKeys: pageKeysOf(seal),
    turns: eventLoopTurns,
    bodies: createBodyReader(),
    signals,
    durable: writer.durable,
    limits: { setup: MAX_BODY_BYTES, send: MAX_BODY_BYTES },
  };
  const operations = routes
    .filter(({ scope }) => scope === 'operator')
    .map((route) => ({ ...route, handler: guardedHandler(route, guard) }));
  app.use(createRouter(operations, respond, METHODS));
  app.use(refuseUnknownPath);
  const handle = app.callback();
  const server = createServer({ requestTimeout: REQUEST_TIMEOUT_MS }, (req, res) => void handle(req, res));
  server.maxConnections = MAX_CONNECTIONS;

  return {
    /** Without the socket the commands read the database: a failure is logged and not fatal. */
    listen: async (): Promise<void> => {
      try {
        // The socket of a daemon that was killed: this one has the lock of the directory.
        rmSync(path, { force: true });
        await new Promise<void>((resolve, reject) => {
          server.once('error', reject);
          server.listen({ path }, resolve);
        });
        chmodSync(path, 0o600);
        server.on('error', (error) => log.error({ err: error }, 'operator socket failed'));
      } catch (error) {
        log.warn(
          { path, reason: errorText(error) },
          'operator socket is not available: "queue explain" on the command line reads only the database',
        );
      }
    },
    close: (graceMs: number): Promise<void> => {
      stopping = true;
      signals.stop();
      if (!server.listening) return Promise.resolve();
      return new Promise((resolve) => {
        const cut = setTimeout(() => server.closeAllConnections(), graceMs);
        server.close(() => {
          clearTimeout(cut);
          resolve();
        });
        server.closeIdleConnections();
      });
    },
  };
}

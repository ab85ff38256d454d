import { chmodSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import type { Caller } from '../accounts/authenticate.ts';
import { OPERATOR_SOCKET } from '../config/data-files.ts';
import { errorText } from '../core/errors.ts';
import type { Context } from '../store/context.ts';
import { createApplication } from './application.ts';
import { closeServer } from './listener.ts';
import { pageKeysOf } from './page-keys.ts';
import type { Route } from './route.ts';

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
  livemode: true,
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
  const application = createApplication(
    { log, ids },
    {
      failure: 'connection to the operator socket failed',
      callerAddressOf: () => ({ address: '127.0.0.1', forwarded: false }),
      isHostAllowed: () => true,
      isTrustedProxy: () => false,
      rateLimits: { take: () => null, takeOfAccount: () => null, configure: () => {} },
      concurrencyOf: () => MAX_CONNECTIONS,
      pageKeys: pageKeysOf(seal),
      durable: writer.durable,
      config: { limits: { setupBytes: MAX_BODY_BYTES, sendBytes: MAX_BODY_BYTES } },
    },
  );
  const operations = routes
    .filter(({ scope }) => scope === 'operator')
    .map((route) => ({ ...route, handler: application.guarded(route, () => CALLER) }));
  const handle = application.serve(operations);
  const server = createServer({ requestTimeout: REQUEST_TIMEOUT_MS }, handle);
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
      application.stop();
      return closeServer(server, graceMs);
    },
  };
}

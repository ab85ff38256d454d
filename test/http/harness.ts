import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Registry } from 'prom-client';
import { createAccounts } from '../../src/accounts/accounts.ts';
import { createAuthenticator } from '../../src/accounts/authenticate.ts';
import { createKeys } from '../../src/accounts/keys.ts';
import {
  createFailureLimits,
  createRateLimits,
  type RateLimitOptions,
} from '../../src/accounts/rate-limits.ts';
import { createIds } from '../../src/core/ids.ts';
import { createLog } from '../../src/core/log.ts';
import { systemRandom } from '../../src/core/random.ts';
import { isRefusal } from '../../src/core/refusal.ts';
import { createPageKeys } from '../../src/http/page-keys.ts';
import type { Route } from '../../src/http/route.ts';
import { createHttpServer, type HttpServerOptions } from '../../src/http/server.ts';
import { createWriter } from '../../src/store/database/writer.ts';
import { createTables } from '../../src/store/tables.ts';
import { openNewDatabase } from '../support/store.ts';

/** An API server on a free port with a real database and a controlled clock. */
export interface TestApiOptions {
  routes?: Route[];
  rates?: RateLimitOptions;
  /** Maximum number of concurrent requests of an account. */
  concurrency?: number;
  api?: Partial<HttpServerOptions['config']['api']>;
  limits?: Partial<HttpServerOptions['config']['limits']>;
  options?: Partial<HttpServerOptions>;
}

const UNLIMITED = { burst: 1_000_000, perSecond: 1_000_000 };

export async function startApi(test: TestApiOptions = {}) {
  const dir = mkdtempSync(join(tmpdir(), 'postrider-http-'));
  const clock = { time: Date.parse('2026-01-31T12:00:00Z'), now: () => clock.time };
  const db = openNewDatabase(dir);
  const tables = createTables(db);
  const writer = createWriter(db, tables);
  const ids = createIds(clock, systemRandom);
  const deps = { tables, writer, clock, ids };
  const accounts = createAccounts(deps);
  const keys = createKeys(deps);
  const created = await accounts.create({ name: 'Test' });
  if (isRefusal(created)) throw new Error(created.message);
  const logged: Record<string, unknown>[] = [];
  const log = createLog(
    { level: 'info', hashAddresses: false },
    { write: (line) => logged.push(JSON.parse(line)) },
  );
  const registry = new Registry();
  const cleanUp = async () => {
    await writer.close();
    db.close();
    rmSync(dir, { recursive: true, force: true });
  };
  const options: HttpServerOptions = {
    config: {
      hostname: 'mail.example.net',
      api: {
        listen: '127.0.0.1:0',
        trustedProxies: [],
        hosts: [],
        connectionsPerAddress: 256,
        ...test.api,
      },
      limits: { setupBytes: 1000, sendBytes: 4000, ...test.limits },
    },
    log,
    ids,
    authenticator: createAuthenticator({ tables }, { failures: createFailureLimits(clock) }),
    rateLimits: createRateLimits(clock, test.rates ?? { setup: UNLIMITED, send: null }),
    concurrencyOf: () => test.concurrency ?? null,
    durable: writer.durable,
    pageKeys: createPageKeys({ tagKey: Buffer.alloc(32, 1), key: Buffer.alloc(32, 2) }),
    routes: test.routes ?? [],
    health: [],
    registry,
    version: '1.2.3',
    ...test.options,
  };
  const server = await started(options).catch(async (error: unknown) => {
    await cleanUp();
    throw error;
  });
  const port = server.address()?.port ?? 0;
  const base = `http://127.0.0.1:${port}`;

  return {
    base,
    port,
    server,
    accounts,
    keys,
    clock,
    logged,
    registry,
    account: created.account,
    secrets: created.keys,
    /** Authentication headers with the key of a scope. */
    as: (scope: 'setup' | 'marketing' | 'transactional') => ({
      'X-Api-Key': created.keys[scope],
      'X-Id': created.account.accountId,
    }),
    stop: async () => {
      await server.close(0);
      await cleanUp();
    },
  };
}

async function started(options: HttpServerOptions) {
  const server = createHttpServer(options);
  await server.listen();
  return server;
}

export type Api = Awaited<ReturnType<typeof startApi>>;

/** The JSON of a response. */
export async function jsonOf(response: Response): Promise<Record<string, unknown>> {
  return (await response.json()) as Record<string, unknown>;
}

/** Sends raw bytes and returns everything received until the server closes the connection. */
export function exchange(port: number, text: string | Buffer): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = '';
    const socket = connect(port, '127.0.0.1', () => socket.write(text));
    socket.setEncoding('latin1');
    socket.on('data', (chunk) => {
      answer += chunk;
    });
    socket.on('close', () => resolve(answer));
    socket.on('error', (error: NodeJS.ErrnoException) => {
      // The server may reset the connection after its response.
      if (error.code !== 'ECONNRESET' && error.code !== 'EPIPE') reject(error);
    });
  });
}

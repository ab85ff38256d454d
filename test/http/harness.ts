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
import type { Route } from '../../src/http/route.ts';
import { createHttpServer, type HttpServerOptions } from '../../src/http/server.ts';
import { openDatabase } from '../../src/store/database.ts';
import { createTables } from '../../src/store/tables.ts';
import { createWriter } from '../../src/store/writer.ts';

/** A whole API listener on a free port, over a real database, with a clock that the test holds. */
export interface Wish {
  routes?: Route[];
  rates?: RateLimitOptions;
  /** Requests of an account at once. */
  concurrency?: number;
  api?: Partial<HttpServerOptions['config']['api']>;
  limits?: Partial<HttpServerOptions['config']['limits']>;
  options?: Partial<HttpServerOptions>;
}

const ROOMY = { burst: 1_000_000, perSecond: 1_000_000 };

export async function startApi(wish: Wish = {}) {
  const dir = mkdtempSync(join(tmpdir(), 'postrider-http-'));
  const clock = { time: Date.parse('2026-01-31T12:00:00Z'), now: () => clock.time };
  const db = openDatabase(dir);
  const tables = createTables(db);
  const writer = createWriter(db, tables);
  const ids = createIds(clock, systemRandom);
  const deps = { tables, writer, clock, ids };
  const accounts = createAccounts(deps);
  const keys = createKeys(deps);
  const made = await accounts.create({ name: 'Test' });
  if (isRefusal(made)) throw new Error(made.message);
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
        ...wish.api,
      },
      limits: { setupBytes: 1000, sendBytes: 4000, ...wish.limits },
    },
    log,
    ids,
    authenticator: createAuthenticator({ tables, failures: createFailureLimits(clock) }),
    rateLimits: createRateLimits(clock, wish.rates ?? { setup: ROOMY, send: null }),
    concurrencyOf: () => wish.concurrency ?? null,
    settled: writer.settled,
    routes: wish.routes ?? [],
    health: [],
    registry,
    version: '1.2.3',
    ...wish.options,
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
    account: made.account,
    secrets: made.keys,
    /** The headers of a caller with the key of a scope. */
    as: (scope: 'setup' | 'marketing' | 'transactional') => ({
      'X-Api-Key': made.keys[scope],
      'X-Id': made.account.accountId,
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

/** The JSON of an answer, loosely typed: a test looks at what it names. */
export async function jsonOf(response: Response): Promise<Record<string, unknown>> {
  return (await response.json()) as Record<string, unknown>;
}

/** Sends bytes as they are and returns all that comes back until the other side closes. */
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
      // A server that cuts a connection off resets it; what it said before counts.
      if (error.code !== 'ECONNRESET' && error.code !== 'EPIPE') reject(error);
    });
  });
}

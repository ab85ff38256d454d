import { type IncomingMessage, METHODS, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import Koa from 'koa';
import type { Registry } from 'prom-client';
import type { Authenticator } from '../accounts/authenticate.ts';
import { isLoopback } from '../accounts/caller-addresses.ts';
import type { RateLimits } from '../accounts/rate-limits.ts';
import type { Config } from '../config/schema.ts';
import type { Ids } from '../core/ids.ts';
import type { Log } from '../core/log.ts';
import { isRefusal, refuse } from '../core/refusal.ts';
import { eventLoopTurns } from '../core/slices.ts';
import { createHostCheck } from './allowed-hosts.ts';
import { pageReply, refusalBody, refusalReply } from './answers.ts';
import { type BodyReader, createBodyReader } from './body/body.ts';
import { createCallSignals } from './call-signals.ts';
import { createCallerAddresses, createTrust } from './caller-address.ts';
import { createFront, respond } from './front.ts';
import { type GuardDeps, guardedHandler } from './guard.ts';
import { healthRoutes, type ReadinessCheck } from './health.ts';
import { createInFlight } from './in-flight.ts';
import { type ConnectionLimits, createListener } from './listener.ts';
import { createHttpMetrics, metricsRoute } from './metrics.ts';
import { docsRoute } from './openapi/docs.ts';
import { openApiDocument, openApiRoute } from './openapi/openapi.ts';
import { oneAtATime, type PipeliningOptions } from './pipelining.ts';
import type { OpenRoute, Route } from './route.ts';
import { createRouter, type Operation, type RequestState } from './router.ts';
import { readOnlyCheck } from './validation/read-only.ts';

/**
 * The API listener: puts the parts of this room together and looks after connections, that is how many, how
 * slow, and how they end. It knows no operation by name.
 */
export interface HttpServer {
  /** Binds `api.listen`; rejects when the address cannot be had. */
  listen(): Promise<void>;
  /** Where it listens, port 0 resolved; null before `listen`. */
  address(): { host: string; port: number } | null;
  /**
   * Takes no new connection, answers new requests 503, aborts waiting calls, and gives those in work
   * `graceMs` to end before it cuts them off.
   */
  close(graceMs: number): Promise<void>;
}

const CONNECTION_LIMITS: ConnectionLimits = {
  headersMs: 15_000,
  requestMs: 120_000,
  keepAliveMs: 65_000,
  checkMs: 2000,
  connections: 8192,
  headerBytes: 16 * 1024,
  writeStallMs: 30_000,
};
/** Of all connections, what programs on this machine may have: a limit for them, too, but a wide one. */
const LOCAL_SHARE = 0.5;

export interface HttpServerOptions {
  config: {
    hostname: string;
    api: Config['api'];
    limits: Pick<Config['limits'], 'setupBytes' | 'sendBytes'>;
  };
  log: Log;
  ids: Ids;
  authenticator: Authenticator;
  rateLimits: RateLimits;
  /** Requests of an account at once; null: any number. */
  concurrencyOf(accountId: string): number | null;
  /** Resolves when all that can be read is on disk. */
  settled(): Promise<void>;
  routes: readonly Route[];
  /** Pages beyond health, metrics and documentation, which are always there. */
  openRoutes?: readonly OpenRoute[];
  health: readonly ReadinessCheck[];
  registry: Registry;
  /** Of the program, for the documentation. */
  version: string;
  connectionLimits?: Partial<ConnectionLimits>;
  pipelining?: PipeliningOptions;
  bodies?: BodyReader;
}

/** Throws when the routes or the configuration contradict themselves. */
export function createHttpServer(options: HttpServerOptions): HttpServer {
  const { config, log, ids } = options;
  const signals = createCallSignals();
  let stopping = false;

  const isTrustedProxy = createTrust(config.api.trustedProxies, 'api.trustedProxies');
  const app = new Koa();
  // Koa would print what it cannot handle; all that is left for it are callers who hang up.
  app.on('error', (error) => log.debug({ err: error }, 'connection failed'));
  app.use(
    createFront({
      log,
      metrics: createHttpMetrics(options.registry),
      callerAddressOf: createCallerAddresses(config.api.trustedProxies, 'api.trustedProxies'),
      isHostAllowed: createHostCheck({ hostname: config.hostname, hosts: config.api.hosts }),
      isTrustedProxy,
      makeRequestId: () => ids.uuid(),
      isStopping: () => stopping,
    }),
  );
  const bodies = options.bodies ?? createBodyReader();
  app.use(createRouter(operationsOf(options, signals, bodies), respond, METHODS));
  app.use((ctx) => {
    const { requestId }: RequestState = ctx.state;
    respond(ctx, refusalReply(refuse('NOT_FOUND', 'there is nothing at this path'), requestId));
  });

  const limits: ConnectionLimits = {
    ...CONNECTION_LIMITS,
    ofOneCaller: (address) => {
      if (isTrustedProxy(address)) return Number.POSITIVE_INFINITY;
      const { connectionsPerAddress } = config.api;
      return isLoopback(address)
        ? Math.max(connectionsPerAddress, CONNECTION_LIMITS.connections * LOCAL_SHARE)
        : connectionsPerAddress;
    },
    ...options.connectionLimits,
  };
  const { server, listen, address, close } = createListener(config.api.listen, 'api.listen', limits);
  const handle = app.callback();
  /** The last request of each connection. */
  const exchanges = new WeakMap<Duplex, ServerResponse>();
  const handleInOrder = oneAtATime((req, res) => void handle(req, res), options.pipelining);
  const onRequest = (req: IncomingMessage, res: ServerResponse) => {
    exchanges.set(req.socket, res);
    handleInOrder(req, res);
  };
  server.on('request', onRequest);
  // Answered by the same rules: the body reader says 100 when it wants the body.
  server.on('checkContinue', onRequest);
  server.on('checkExpectation', onRequest);
  server.on('clientError', (error: Error & { code?: string }, socket) => {
    // An upload takes as long as its rows do; its reader knows when nothing comes any more.
    if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && bodies.isUploading(socket)) return;
    if (error.code === 'ECONNRESET' || !socket.writable || isAnswered(exchanges.get(socket))) {
      socket.destroy();
    } else {
      answerBroken(error.code, limits.headerBytes, socket, ids.uuid());
    }
  });

  return {
    listen,
    address,
    close: (graceMs) => {
      stopping = true;
      signals.stop();
      return close(graceMs);
    },
  };
}

function operationsOf(
  options: HttpServerOptions,
  signals: GuardDeps['signals'],
  bodies: BodyReader,
): Operation[] {
  const { config, routes, registry } = options;
  const guard: GuardDeps = {
    authenticator: options.authenticator,
    rateLimits: options.rateLimits,
    concurrencyOf: options.concurrencyOf,
    inFlight: createInFlight(),
    turns: eventLoopTurns,
    settled: options.settled,
    bodies,
    signals,
    limits: { setup: config.limits.setupBytes, send: config.limits.sendBytes },
  };
  const described: OpenRoute[] = [
    ...healthRoutes({ checks: options.health, log: options.log, metricsKey: config.api.metricsKey }),
    metricsRoute(registry, config.api.metricsKey),
    ...(options.openRoutes ?? []),
  ];
  const document = openApiDocument({ routes, openRoutes: described, version: options.version });
  const documents = [openApiRoute(document), docsRoute(document)];
  return [
    ...routes.map((route) => ({
      ...route,
      handler: guardedHandler(route, guard, readOnlyCheck(route, routes)),
    })),
    ...described.map((route) => ({ ...route, method: 'GET', handler: openHandler(route) })),
    ...documents.map((route) => ({ ...route, method: 'GET', handler: boundedHandler(route) })),
  ];
}

/**
 * Responses of one large page at a time. They need no key, and what a client does not read fills the buffers of the
 * system, which costs the event loop the copying.
 */
const LARGE_PAGES = 16;

/** A page that is large and needs no key: beyond the bound it is refused for a moment. */
function boundedHandler(route: OpenRoute): Operation['handler'] {
  const visit = openHandler(route);
  let open = 0;
  return async (incoming) => {
    if (open >= LARGE_PAGES) {
      const busy = refuse('UNAVAILABLE', 'too many clients are reading this page', { retryAfter: 1 });
      return refusalReply(busy, incoming.requestId);
    }
    open++;
    incoming.res.once('close', () => {
      open--;
    });
    return visit(incoming);
  };
}

function openHandler(route: OpenRoute): Operation['handler'] {
  return async (incoming) => {
    const page = await route.visit({
      from: incoming.from(),
      query: new URLSearchParams(incoming.search),
      headers: incoming.req.headers,
      requestId: incoming.requestId,
    });
    return isRefusal(page) ? refusalReply(page, incoming.requestId) : pageReply(page);
  };
}

/** Whether the request that is now on the connection has got its answer, or part of it, already. */
function isAnswered(res: ServerResponse | undefined): boolean {
  if (res === undefined || !res.headersSent) return false;
  return !(res.writableFinished && res.req.complete);
}

/** What Node itself found wrong: not HTTP, too long, too slow. There is no request yet to answer. */
function answerBroken(
  code: string | undefined,
  headerBytes: number,
  socket: Duplex,
  requestId: string,
): void {
  const [status, message] =
    code === 'HPE_HEADER_OVERFLOW'
      ? ['431 Request Header Fields Too Large', `address and header fields are over ${headerBytes} bytes`]
      : code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? ['408 Request Timeout', 'the request did not arrive in time']
        : ['400 Bad Request', 'this is not a valid HTTP/1.1 request'];
  const body = refusalBody(refuse('VALIDATION_ERROR', message), requestId);
  socket.end(
    [
      `HTTP/1.1 ${status}`,
      'Connection: close',
      'Content-Type: application/json; charset=utf-8',
      `Content-Length: ${Buffer.byteLength(body)}`,
      'Cache-Control: no-store',
      `X-Request-Id: ${requestId}`,
      '',
      body,
    ].join('\r\n'),
    // The server's sockets stay half open otherwise, for as long as the caller likes.
    () => socket.destroy(),
  );
}

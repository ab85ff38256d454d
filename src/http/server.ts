import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Registry } from 'prom-client';
import type { Authenticator } from '../accounts/authenticate.ts';
import type { RateLimits } from '../accounts/rate-limits.ts';
import type { Config } from '../config/schema.ts';
import { inSlices } from '../core/concurrency/slices.ts';
import type { Ids } from '../core/ids.ts';
import type { Log } from '../core/log.ts';
import { memoized } from '../core/memoized.ts';
import { refuse } from '../core/refusal.ts';
import { isLoopback } from '../dns/address-kinds.ts';
import { createHostCheck } from './allowed-hosts.ts';
import { type Application, createApplication } from './application.ts';
import type { BodyReader } from './body/body.ts';
import { whenClosed } from './call-signals.ts';
import { createCallerAddresses, createTrust } from './caller-address.ts';
import { type CompatProvider, compatOperations, refusalsOf } from './compat/provider.ts';
import { byKey } from './guard.ts';
import { healthRoutes, type ReadinessCheck } from './health.ts';
import { createListener, type HttpConnectionLimits } from './listener.ts';
import { createHttpMetrics, metricsRoute } from './metrics.ts';
import { openHandler } from './open-handler.ts';
import { docsRoutes } from './openapi/docs.ts';
import type { OpenApiDocument } from './openapi/document.ts';
import { buildingDocument, openApiRoute } from './openapi/openapi.ts';
import type { PageKeys } from './page-keys.ts';
import { oneAtATime, type PipeliningOptions } from './pipelining.ts';
import { refusalBody, refusalResponse } from './responses.ts';
import type { OpenRoute, Route } from './route.ts';
import type { Operation } from './router.ts';
import { endSlowly, isLingering } from './unread-body.ts';

const CONNECTION_LIMITS: HttpConnectionLimits = {
  headersMs: 15_000,
  requestMs: 120_000,
  keepAliveMs: 65_000,
  checkMs: 2000,
  connections: 8192,
  headerBytes: 16 * 1024,
  writeStallMs: 30_000,
};
/** Share of all connections that clients on this machine may have. */
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
  /** Maximum number of concurrent requests of an account; null: unlimited. */
  concurrencyOf(accountId: string): number | null;
  /** Resolves when all readable data is on disk. */
  durable(): Promise<void>;
  pageKeys: PageKeys;
  routes: readonly Route[];
  /** Interfaces of other providers. They are not part of the documentation. */
  compat?: readonly CompatProvider[];
  /** Routes without a key, in addition to health, metrics and documentation. */
  openRoutes?: readonly OpenRoute[];
  health: readonly ReadinessCheck[];
  registry: Registry;
  /** Version of the program, for the documentation. */
  version: string;
  connectionLimits?: Partial<HttpConnectionLimits>;
  pipelining?: PipeliningOptions;
  bodies?: BodyReader;
}

/**
 * The API server: assembles the parts of this module and limits connections. It knows no operation by name. Throws when a
 * route or the configuration is inconsistent.
 */
export function createHttpServer(options: HttpServerOptions) {
  const { config, ids } = options;
  const isTrustedProxy = createTrust(() => config.api.trustedProxies, 'api.trustedProxies');
  const hostCheck = memoized(
    () => config.api.hosts,
    (hosts) => createHostCheck({ hostname: config.hostname, hosts }),
  );
  const application = createApplication(options, {
    ...options,
    failure: 'connection failed',
    metrics: createHttpMetrics(options.registry),
    callerAddressOf: createCallerAddresses(() => config.api.trustedProxies, 'api.trustedProxies'),
    isHostAllowed: (host) => hostCheck()(host),
    isTrustedProxy,
    refusedAt: refusalsOf(options.compat ?? []),
  });
  const { bodies } = application;
  const { operations, document } = operationsOf(options, application);

  const limits: HttpConnectionLimits = {
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
  /** The last request of each connection. */
  const exchanges = new WeakMap<Duplex, ServerResponse>();
  const handleInOrder = oneAtATime(application.serve(operations), options.pipelining);
  const onRequest = (req: IncomingMessage, res: ServerResponse) => {
    exchanges.set(req.socket, res);
    handleInOrder(req, res);
  };
  server.on('request', onRequest);
  // Handled by the same rules: the body reader sends 100 when it starts to read the body.
  server.on('checkContinue', onRequest);
  server.on('checkExpectation', onRequest);
  server.on('clientError', (error: Error & { code?: string }, socket) => {
    // An upload may take longer than any request; its reader has its own timeout.
    if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && bodies.isUploading(socket)) return;
    if (isLingering(socket)) return;
    if (error.code === 'ECONNRESET' || !socket.writable || isAnswered(exchanges.get(socket))) {
      socket.destroy();
    } else {
      respondToInvalid(error.code, limits.headerBytes, socket, ids.uuid());
    }
  });

  return {
    /** Binds `api.listen`; rejects when the address is not available. */
    listen,
    /** The bound address, with port 0 resolved; null before `listen`. */
    address,
    /** `/openapi.json`, for other listeners. */
    document,
    /**
     * Accepts no new connections, answers new requests with 503, aborts waiting handlers, and closes connections that
     * have not ended after `graceMs`.
     */
    close: (graceMs: number): Promise<void> => {
      application.stop();
      return close(graceMs);
    },
  };
}

function operationsOf(
  options: HttpServerOptions,
  { guarded }: Application,
): { operations: Operation[]; document: OpenRoute } {
  const { config, routes, registry } = options;
  const authenticate = byKey(options.authenticator);
  // Read at each use: a reload changes it.
  const metricsKey = () => config.api.metricsKey;
  const described: OpenRoute[] = [
    ...healthRoutes({ checks: options.health, log: options.log, metricsKey }),
    metricsRoute(registry, metricsKey),
    ...(options.openRoutes ?? []),
  ];
  // Built for the first request: building the document at the start would make the start half as long again.
  let built: Promise<OpenApiDocument> | null = null;
  const document = () => {
    built ??= inSlices(
      buildingDocument({ routes, openRoutes: described, version: options.version }),
      DOCUMENTATION,
    );
    return built;
  };
  const openApi = openApiRoute(document);
  const documents = [openApi, ...docsRoutes(document)];
  const operations = [
    ...routes.map((route) => ({ ...route, handler: guarded(route, authenticate) })),
    ...compatOperations(options, options.compat ?? [], guarded),
    ...described.map((route) => ({ ...route, method: 'GET', handler: openHandler(route) })),
    ...documents.map((route) => ({ ...route, method: 'GET', handler: boundedHandler(route) })),
  ];
  return { operations, document: openApi };
}

/** The account, in the order of turns, whose work is the documentation; no account has this id. */
const DOCUMENTATION = 'documentation';

/**
 * Concurrent responses of one large page. They require no key, and copying bytes to the buffers of connections takes time
 * of the event loop.
 */
const MAX_LARGE_PAGES = 16;

/** Handler of a large page without a key: over the limit, it is unavailable for a moment. */
function boundedHandler(route: OpenRoute): Operation['handler'] {
  const handle = openHandler(route);
  let open = 0;
  return async (incoming) => {
    if (open >= MAX_LARGE_PAGES) {
      const busy = refuse('UNAVAILABLE', 'Too many clients are reading this page', { retryAfter: 1 });
      return refusalResponse(busy, incoming.requestId);
    }
    open++;
    whenClosed(incoming.res, () => {
      open--;
    });
    return handle(incoming);
  };
}

/** Whether the response to the current request of the connection has started. */
function isAnswered(res: ServerResponse | undefined): boolean {
  if (res === undefined || !res.headersSent) return false;
  return !(res.writableFinished && res.req.complete);
}

/** Responds to what Node rejects before there is a request: not HTTP, too long, too slow. */
function respondToInvalid(
  code: string | undefined,
  headerBytes: number,
  socket: Duplex,
  requestId: string,
): void {
  const [status, message] =
    code === 'HPE_HEADER_OVERFLOW'
      ? ['431 Request Header Fields Too Large', `Request line and header fields exceed ${headerBytes} bytes`]
      : code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? ['408 Request Timeout', 'The request did not arrive in time']
        : ['400 Bad Request', 'Not a valid HTTP/1.1 request'];
  const body = refusalBody(refuse('VALIDATION_ERROR', message), requestId);
  endSlowly(
    socket,
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
  );
}

import type { IncomingMessage } from 'node:http';
import type { Context, Middleware } from 'koa';
import { createErrorLog, type Log, type LogError } from '../core/log.ts';
import { invalid, type Refusal, refuse } from '../core/refusal.ts';
import { storageFailure } from '../store/database/failure.ts';
import { hasBody } from './body/body.ts';
import { type CallerAddressOf, isForwarded } from './caller-address.ts';
import { hasTooManyFields, MAX_HEADER_FIELDS } from './listener.ts';
import type { HttpMetrics } from './metrics.ts';
import { faultRefusal, largeBody, type RefusalResponse, refusalResponse } from './responses.ts';
import type { HttpResponse } from './route.ts';
import type { RequestState } from './router.ts';
import { discard, respondBeforeBody } from './unread-body.ts';

/*
 * The outermost middleware: assigns the request id, turns errors into responses, counts requests, and discards bodies
 * that no handler reads.
 */

export interface FrontDeps {
  log: Log;
  metrics: HttpMetrics;
  callerAddressOf: CallerAddressOf;
  createRequestId(): string;
  /** Whether the API is served under the name in `Host`. */
  isHostAllowed(host: string): boolean;
  /** Whether the address is one of `api.trustedProxies`. */
  isTrustedProxy(address: string): boolean;
  /** The message for a client whose `Host` is not allowed; default: names the settings of the API. */
  hostAdvice?(host: string): string;
  /** The response for a refusal of a request with this path. Default: that of our API. */
  refusedAt?(path: string): RefusalResponse;
  /** True once the server is closing. */
  isStopping(): boolean;
}

const VALID_REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;
/** Characters of an unknown path that the response repeats. */
const MAX_SHOWN_PATH = 200;
/**
 * The parts that release something at the end of a response, and the pipe that writes a large body, are more than the ten
 * from which Node warns.
 */
const MAX_RESPONSE_LISTENERS = 20;

/**
 * Must be the first middleware of an application. Never rejects: errors become responses, logged once per kind and 10 s
 * while storage fails. Logs up to 100 unknown host names, each once.
 */
export function createFront(deps: FrontDeps): Middleware {
  const { log, metrics } = deps;
  const logError = createErrorLog(log);
  const warnHost = createHostWarnings(log);
  return async (ctx, next) => {
    const started = performance.now();
    const { req } = ctx;
    let from: ReturnType<CallerAddressOf> | null = null;
    const state: RequestState = {
      requestId: requestIdOf(req) ?? deps.createRequestId(),
      operationId: '',
      from: () => {
        from ??= deps.callerAddressOf(req);
        return from;
      },
      refused: deps.refusedAt?.(ctx.path) ?? refusalResponse,
    };
    ctx.state = state;
    ctx.res.setMaxListeners(MAX_RESPONSE_LISTENERS);
    try {
      const refusal = earlyRefusal(req, deps, warnHost);
      if (refusal === null) await next();
      else respond(ctx, state.refused(refusal, state.requestId));
    } catch (error) {
      respond(ctx, state.refused(faultOf(error, state, logError), state.requestId));
    }
    if (deps.isStopping()) ctx.set('Connection', 'close');
    const seconds = (performance.now() - started) / 1000;
    metrics.observe(state.operationId, ctx.status, seconds);
    if (log.isLevelEnabled('debug')) logRequest(log, ctx, state, seconds);
    if (!req.complete && hasBody(req)) await respondEarly(ctx);
  };
}

/** Writes a response; null: the client has disconnected. */
export function respond(ctx: Context, reply: HttpResponse | null): void {
  const state: RequestState = ctx.state;
  if (reply === null) {
    ctx.respond = false;
    ctx.res.destroy();
    return;
  }
  ctx.status = reply.status;
  const { res } = ctx;
  res.setHeader('X-Request-Id', state.requestId);
  res.setHeader('Cache-Control', 'no-store');
  res.setHeader('X-Content-Type-Options', 'nosniff');
  for (const [name, value] of Object.entries(reply.headers ?? {})) res.setHeader(name, value);
  if (reply.contentType !== '') res.setHeader('Content-Type', reply.contentType);
  const large = largeBody(reply.body);
  ctx.body = large ?? reply.body;
  if (large !== null) ctx.length = Buffer.byteLength(reply.body);
  // Of a HEAD whose body was not read.
  const length = reply.headers?.['Content-Length'];
  if (length !== undefined) ctx.length = Number(length);
}

/** The last middleware of an application: no operation has the path of the request. */
export const refuseUnknownPath: Middleware = (ctx) => {
  const { requestId, refused }: RequestState = ctx.state;
  const message = `The path ${ctx.path.slice(0, MAX_SHOWN_PATH)} does not exist`;
  respond(ctx, refused(refuse('NOT_FOUND', message), requestId));
};

function requestIdOf(req: IncomingMessage): string | null {
  const sent = req.headers['x-request-id'];
  return typeof sent === 'string' && VALID_REQUEST_ID.test(sent) ? sent : null;
}

/** Refuses a request before it is routed; null: it is not refused. */
function earlyRefusal(
  req: IncomingMessage,
  deps: FrontDeps,
  warnHost: (host: string) => void,
): Refusal | null {
  if (deps.isStopping()) return refuse('UNAVAILABLE', 'The service is shutting down');
  // Not "headers", which is a field of a send.
  if (hasTooManyFields(req))
    return invalid('request headers', `must have at most ${MAX_HEADER_FIELDS} fields`);
  // RFC 9112 §3.2: a request of HTTP/1.1 without Host is answered 400.
  if (req.headers.host === undefined && req.httpVersion === '1.1') {
    return invalid('Host', 'is required');
  }
  const host = hostNotAllowed(req, deps);
  if (host !== null) {
    warnHost(host);
    return refuse('HOST_NOT_ALLOWED', deps.hostAdvice?.(host) ?? apiHostAdvice(host));
  }
  return toOriginForm(req) ? null : invalid('path', 'must begin with "/"');
}

function apiHostAdvice(host: string): string {
  return `The API is not served under the host name "${host}": add it to api.hosts, or the proxy that forwards it to api.trustedProxies, in the configuration`;
}

const MAX_HOST_WARNINGS = 100;

/** Logs each refused host name once, up to a limit. */
function createHostWarnings(log: Log): (host: string) => void {
  const warned = new Set<string>();
  return (host) => {
    if (warned.has(host) || warned.size >= MAX_HOST_WARNINGS) return;
    warned.add(host);
    log.warn({ host, setting: 'api.hosts' }, 'request for an unknown host name refused');
  };
}

/** The requested host name, truncated, if the API is not served under it; else null. */
function hostNotAllowed(req: IncomingMessage, deps: FrontDeps): string | null {
  const { host } = req.headers;
  if (host === undefined || deps.isHostAllowed(host)) return null;
  // A trusted proxy forwards the name that its clients use. A direct request of the same machine names no client.
  if (isForwarded(req.headers) && deps.isTrustedProxy(req.socket.remoteAddress ?? '')) return null;
  return host.slice(0, 100);
}

/** Replaces `GET http://host/path` (RFC 9112 §3.2.2) by its path, as the router expects it; false when it has none. */
function toOriginForm(req: IncomingMessage): boolean {
  if (req.url?.startsWith('/')) return true;
  if (req.url === undefined || !URL.canParse(req.url)) return false;
  const { pathname, search } = new URL(req.url);
  req.url = pathname + search;
  return pathname.startsWith('/');
}

/** Logs an unexpected error with the request id; the response has no details of it. */
function faultOf(error: unknown, state: RequestState, logError: LogError): Refusal {
  const { requestId, operationId } = state;
  const failure = storageFailure(error);
  logError(failure?.kind ?? null, { err: error, requestId, operationId }, 'request failed');
  return faultRefusal(error);
}

/** Responds to a request whose body has not arrived completely. */
async function respondEarly(ctx: Context): Promise<void> {
  const { req, res, body } = ctx;
  // Without a 100 the client may not send the body: the connection cannot be reused.
  if (req.headers.expect !== undefined) ctx.set('Connection', 'close');
  if (ctx.respond === false) return;
  if (typeof body === 'string' || Buffer.isBuffer(body)) {
    ctx.respond = false;
    await respondBeforeBody(req, res, body);
  } else void discard(req);
}

function logRequest(log: Log, ctx: Context, state: RequestState, seconds: number): void {
  log.debug(
    {
      requestId: state.requestId,
      operationId: state.operationId,
      method: ctx.method,
      status: ctx.status,
      address: state.from().address,
      durationMs: Math.round(seconds * 1000),
    },
    'request completed',
  );
}

import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type { Context, Middleware } from 'koa';
import { createErrorLog, type Log, type LogError } from '../core/log.ts';
import { invalid, type Refusal, refuse } from '../core/refusal.ts';
import { eventLoopTurns } from '../core/slices.ts';
import { storageFailure } from '../store/failure.ts';
import { type Reply, refusalReply } from './answers.ts';
import { hasBody } from './body/body.ts';
import type { CallerAddressOf } from './caller-address.ts';
import type { HttpMetrics } from './metrics.ts';
import type { RequestState } from './router.ts';

/**
 * The first and last hand on every request: gives it an id, catches whatever goes wrong behind it, counts it,
 * and looks after the bytes of a body that nobody wanted.
 */
export interface FrontDeps {
  log: Log;
  metrics: HttpMetrics;
  callerAddressOf: CallerAddressOf;
  makeRequestId(): string;
  /** Whether the API may be reached under the name in `Host`. */
  isHostAllowed(host: string): boolean;
  /** Whether the address is one of `api.trustedProxies`. */
  isTrustedProxy(address: string): boolean;
  /** True from the moment the server is to close. */
  isStopping(): boolean;
}

const SANE_REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;
/** A refused body is read on and thrown away up to here, so that its sender sees the answer; then cut off. */
const LINGER_BYTES = 8 * 1024 * 1024;
/** A refused body is read on in turns, all of them together as one account. Chunks have 64 KiB at most. */
const DISCARDING = 'refused bodies';
const DISCARDED_PER_TURN = 16 * 1024;
/** Bytes of a body that are handed to the connection together. */
const PIECE_BYTES = 64 * 1024;

export function createFront(deps: FrontDeps): Middleware {
  const { log, metrics } = deps;
  const logError = createErrorLog(log);
  return async (ctx, next) => {
    const started = performance.now();
    const { req } = ctx;
    let from: ReturnType<CallerAddressOf> | null = null;
    const state: RequestState = {
      requestId: requestIdOf(req) ?? deps.makeRequestId(),
      operationId: '',
      from: () => {
        from ??= deps.callerAddressOf(req);
        return from;
      },
    };
    ctx.state = state;
    try {
      const refusal = refusedAtOnce(req, deps);
      if (refusal === null) await next();
      else respond(ctx, refusalReply(refusal, state.requestId));
    } catch (error) {
      respond(ctx, refusalReply(faultOf(error, state, logError), state.requestId));
    }
    if (deps.isStopping()) ctx.set('Connection', 'close');
    if (!req.complete && hasBody(req)) discardRest(ctx);
    const seconds = (performance.now() - started) / 1000;
    metrics.observe(state.operationId, ctx.status, seconds);
    if (log.isLevelEnabled('debug')) logRequest(log, ctx, state, seconds);
  };
}

/** Writes a reply; null when there is nobody to read it. */
export function respond(ctx: Context, reply: Reply | null): void {
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
  for (const [name, value] of Object.entries(reply.headers)) res.setHeader(name, value);
  if (reply.contentType !== '') res.setHeader('Content-Type', reply.contentType);
  if (Buffer.byteLength(reply.body) <= PIECE_BYTES) {
    ctx.body = reply.body;
    return;
  }
  const bytes = typeof reply.body === 'string' ? Buffer.from(reply.body) : reply.body;
  ctx.body = Readable.from(piecesOf(bytes), { objectMode: false, highWaterMark: 1 });
  ctx.length = bytes.length;
}

/** A large body is written as the client reads it: what waits in the socket shows whether it does. */
function* piecesOf(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES);
}

function requestIdOf(req: IncomingMessage): string | null {
  const given = req.headers['x-request-id'];
  return typeof given === 'string' && SANE_REQUEST_ID.test(given) ? given : null;
}

function refusedAtOnce(req: IncomingMessage, deps: FrontDeps): Refusal | null {
  if (deps.isStopping()) return refuse('UNAVAILABLE', 'the service is shutting down');
  // RFC 9112 §3.2: a request of HTTP/1.1 without Host is answered 400.
  if (req.headers.host === undefined && req.httpVersion === '1.1') {
    return invalid('Host', 'is required');
  }
  const host = hostNotAllowed(req, deps);
  if (host !== null) {
    warnOnce(deps.log, host);
    return refuse(
      'HOST_NOT_ALLOWED',
      `the API is not served under the host name "${host}": add it to api.hosts, or the proxy that passes it on to api.trustedProxies, in the configuration`,
    );
  }
  return originForm(req) ? null : invalid('path', 'is not a path');
}

const HOSTS_WARNED_OF = 100;
const hostsWarnedOf = new Set<string>();

function warnOnce(log: Log, host: string): void {
  if (hostsWarnedOf.has(host) || hostsWarnedOf.size >= HOSTS_WARNED_OF) return;
  hostsWarnedOf.add(host);
  log.warn({ host, setting: 'api.hosts' }, 'request for an unknown host name refused');
}

/** The host name that the request is for, shortened, when the API is not served under it; else null. */
function hostNotAllowed(req: IncomingMessage, deps: FrontDeps): string | null {
  const { host } = req.headers;
  if (host === undefined || deps.isHostAllowed(host)) return null;
  // A proxy that the operator named passes on the name that its callers use.
  if (deps.isTrustedProxy(req.socket.remoteAddress ?? '')) return null;
  return host.slice(0, 100);
}

/** Makes `GET http://host/path` (RFC 9112 §3.2.2) a plain path, as what follows expects. */
function originForm(req: IncomingMessage): boolean {
  if (req.url?.startsWith('/')) return true;
  if (req.url === undefined || !URL.canParse(req.url)) return false;
  const { pathname, search } = new URL(req.url);
  req.url = pathname + search;
  return pathname.startsWith('/');
}

/** Logs an unexpected error with the request's id; the caller learns no more than whether to try again. */
function faultOf(error: unknown, state: RequestState, logError: LogError): Refusal {
  const { requestId, operationId } = state;
  const failure = storageFailure(error);
  logError(failure?.kind ?? null, { err: error, requestId, operationId }, 'request failed');
  if (failure !== null) return refuse('UNAVAILABLE', `The request was not processed: ${failure.reason}`);
  return refuse('INTERNAL_ERROR', 'something went wrong here; the log has it under this request id');
}

function discardRest(ctx: Context): void {
  const { req } = ctx;
  // The caller was promised no 100 and may send nothing more: the connection cannot be used again.
  if (req.headers.expect !== undefined) ctx.set('Connection', 'close');
  let left = LINGER_BYTES;
  req.on('data', (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0) req.destroy();
    else if (chunk.length >= DISCARDED_PER_TURN) void discardMore(req);
  });
}

async function discardMore(req: IncomingMessage): Promise<void> {
  req.pause();
  await eventLoopTurns.next(DISCARDING);
  req.resume();
}

function logRequest(log: Log, ctx: Context, state: RequestState, seconds: number): void {
  log.debug(
    {
      requestId: state.requestId,
      operationId: state.operationId,
      method: ctx.method,
      status: ctx.status,
      address: state.from().address,
      ms: Math.round(seconds * 1000),
    },
    'request',
  );
}

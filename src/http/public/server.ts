import type { IncomingMessage, ServerResponse } from 'node:http';
import { Counter, type Registry } from 'prom-client';
import type { Config } from '../../config/schema.ts';
import { createErrorLog, type Log } from '../../core/log.ts';
import { isLoopback } from '../../dns/address-kinds.ts';
import { ReadRejected, storageFailure } from '../../store/database/failure.ts';
import { hasBody } from '../body/body.ts';
import { whenClosed } from '../call-signals.ts';
import { createCallerAddresses, createTrust } from '../caller-address.ts';
import {
  type ContextFor,
  createListener,
  type HttpConnectionLimits,
  hasTooManyFields,
  refuseInvalid,
} from '../listener.ts';
import { oneAtATime } from '../pipelining.ts';
import { largeBody } from '../responses.ts';
import { respondBeforeBody } from '../unread-body.ts';
import { type FormFields, readFormFields } from './form-body.ts';
import { type Look, plainLook } from './look.ts';
import { faultPage, homePage, methodPage, tooLargePage, unknownLinkPage } from './plain-pages.ts';
import { COMMON_HEADERS, type PublicResponse, type PublicRoute } from './response.ts';
import { visitorOf } from './visitor.ts';

export interface PublicServerOptions {
  config: Pick<Config['public'], 'listen' | 'trustedProxies'>;
  /** HTTPS listener at a separate address. */
  secure?: { listen: string; contextFor: ContextFor };
  log: Log;
  registry: Registry;
  routes: readonly PublicRoute[];
  limits?: Partial<HttpConnectionLimits>;
}

/** Requests to public pages are small. */
const LIMITS: Omit<HttpConnectionLimits, 'ofOneCaller'> = {
  headersMs: 10_000,
  requestMs: 20_000,
  keepAliveMs: 10_000,
  checkMs: 2000,
  connections: 8192,
  // A tracked link contains a complete URL, and browsers add the cookies of the parent domain.
  headerBytes: 32 * 1024,
  writeStallMs: 30_000,
};
const CONNECTIONS_PER_CLIENT = 256;
const NO_FIELDS: FormFields = new Map();

/**
 * The server of the public pages, which is reachable from the internet. It handles GET and POST for a few routes,
 * independent of the host name, and trusts nothing but signed tokens.
 *
 * Binds nothing before `listen`; registers `postrider_public_answers_total`. Without `secure` there is only the HTTP
 * listener. An error of a route becomes a 503 without details.
 */
export function createPublicServer(options: PublicServerOptions) {
  const { config } = options;
  const logError = createErrorLog(options.log);
  const callerAddressOf = createCallerAddresses(() => config.trustedProxies, 'public.trustedProxies');
  const isProxy = createTrust(() => config.trustedProxies, 'public.trustedProxies');
  const routes = new Map(options.routes.map((route) => [route.name, route]));
  const responseCounter = new Counter({
    name: 'postrider_public_answers_total',
    help: 'Responses of the public pages, by route and status.',
    labelNames: ['place', 'status'],
    registers: [options.registry],
  });
  const limits: HttpConnectionLimits = {
    ...LIMITS,
    ofOneCaller: (address) =>
      isLoopback(address) || isProxy(address) ? Number.POSITIVE_INFINITY : CONNECTIONS_PER_CLIENT,
    ...options.limits,
  };
  const listener = createListener(config.listen, 'public.listen', limits);
  const { secure } = options;
  const listeners =
    secure === undefined
      ? [listener]
      : [listener, createListener(secure.listen, 'public.tls.listen', limits, secure.contextFor)];

  async function handle(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const { name, token } = targetOf(req.url ?? '');
    const acceptLanguage = req.headers['accept-language'] ?? '';
    const look = plainLook(acceptLanguage);
    const response = await responseTo(req, res, name, token, acceptLanguage, look).catch((error: unknown) => {
      // Too many reads wait: nothing failed.
      if (!(error instanceof ReadRejected))
        logError(storageFailure(error)?.kind ?? null, { err: error, route: name }, 'public page failed');
      return faultPage(look);
    });
    if (response?.onClosed !== undefined) whenClosed(res, response.onClosed);
    // The client has disconnected.
    if (response === null) return void res.destroy();
    responseCounter.labels(routes.has(name) ? name : 'other', String(response.status)).inc();
    await send(req, res, response);
  }

  async function responseTo(
    req: IncomingMessage,
    res: ServerResponse,
    name: string,
    token: string,
    acceptLanguage: string,
    look: Look,
  ): Promise<PublicResponse | null> {
    if (hasTooManyFields(req)) return tooLargePage(look);
    const isHead = req.method === 'HEAD';
    const method = isHead ? 'GET' : req.method;
    const route = routes.get(name);
    if (route === undefined || token === '') return fallback(look, method, name, token);
    if ((method !== 'GET' && method !== 'POST') || !route.methods.includes(method))
      return methodPage(look, allowed(route.methods));
    const fields = method === 'POST' ? await readFormFields(req) : NO_FIELDS;
    if (fields === null) return null;
    if (fields === 'too-large') return tooLargePage(look);
    const visitor = visitorOf(req.headers, callerAddressOf(req).address, isHead);
    const host = hostOf(req, isProxy(req.socket.remoteAddress ?? ''));
    const ifNoneMatch = req.headers['if-none-match'];
    const isClosed = () => res.closed;
    return route.handle({
      method,
      isHead,
      isClosed,
      host,
      token,
      visitor,
      acceptLanguage,
      ifNoneMatch,
      fields,
    });
  }

  for (const { server } of listeners) {
    server.on(
      'request',
      oneAtATime((req, res) => void handle(req, res)),
    );
    server.on('clientError', refuseInvalid);
  }

  return {
    /** Binds `public.listen`; rejects when the address is not available. */
    listen: async (): Promise<void> => {
      for (const each of listeners) await each.listen();
    },
    /** The bound address, with port 0 resolved; null before `listen`. */
    address: listener.address,
    /** The bound address of the HTTPS listener; null if there is none, or before `listen`. */
    secureAddress: () => listeners[1]?.address() ?? null,
    close: async (graceMs: number): Promise<void> =>
      void (await Promise.all(listeners.map((each) => each.close(graceMs)))),
  };
}

/**
 * `/u/abc?x=1` is the route `u` with the token `abc`. A path with more or fewer segments has no token, except for the
 * route of RFC 8555, whose name has two segments.
 */
function targetOf(url: string): { name: string; token: string } {
  // RFC 9112 §3.2.2: `GET http://host/path`, as sent to a proxy, is equivalent.
  const [path = ''] = url.replace(/^https?:\/\/[^/?#]*/i, '').split(/[?#]/, 1);
  const cleaned = asWritten(path);
  const [, name = '', token = ''] = /^\/(\.well-known\/acme-challenge|[^/]*)(?:\/([^/]+))?$/.exec(
    cleaned,
  ) ?? [cleaned, cleaned];
  return { name, token };
}

/** Longer than any path of ours. */
const MAX_PATH = 16 * 1024;
/** Characters around a link in a text that some mail clients take into it. */
const AFTER_A_LINK = ' \t.,;:!)>]}"\'/';

/**
 * The path as it was in the mail. Some clients percent-encode characters that need no encoding, which means the same
 * (RFC 3986 §6.2.2.2), and others add the character that follows a link.
 */
function asWritten(path: string): string {
  if (path.length > MAX_PATH) return path;
  const decoded = path.replaceAll(/%([\da-f]{2})/gi, (encoded, hex: string) => {
    const char = String.fromCharCode(Number.parseInt(hex, 16));
    return /[\w.~-]/.test(char) || (char !== '/' && AFTER_A_LINK.includes(char)) ? char : encoded;
  });
  let end = decoded.length;
  while (end > 1 && AFTER_A_LINK.includes(decoded.charAt(end - 1))) end--;
  return decoded.slice(0, end);
}

/**
 * The host of an absolute request target (RFC 9112 §3.2.2), else of the Host field. A trusted proxy may send the
 * original host in X-Forwarded-Host.
 */
function hostOf(req: IncomingMessage, viaProxy: boolean): string {
  const forwarded = viaProxy
    ? String(req.headers['x-forwarded-host'] ?? '')
        .split(',', 1)[0]
        ?.trim()
    : '';
  const absolute = /^https?:\/\/([^/?#]*)/i.exec(req.url ?? '')?.[1];
  const authority = forwarded || (absolute ?? req.headers.host ?? '');
  return authority.toLowerCase().replace(/:\d*$/, '').replace(/\.$/, '');
}

/** Paths without a route: the home page and robots.txt. */
function fallback(look: Look, method: string | undefined, name: string, token: string): PublicResponse {
  if (method !== 'GET') return methodPage(look, allowed(['GET']));
  if (token !== '') return unknownLinkPage(look);
  if (name === '') return homePage(look);
  return name === 'robots.txt' ? ROBOTS : unknownLinkPage(look);
}

const ROBOTS: PublicResponse = {
  status: 200,
  headers: { ...COMMON_HEADERS, 'Content-Type': 'text/plain; charset=utf-8' },
  body: 'User-agent: *\nDisallow: /\n',
};

function allowed(methods: readonly string[]): string {
  return methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ');
}

async function send(
  req: IncomingMessage,
  res: ServerResponse,
  { status, headers, body }: PublicResponse,
): Promise<void> {
  const isEarly = !req.complete && hasBody(req);
  res.writeHead(status, {
    ...headers,
    // RFC 9110 §8.6: that of the 200, or none.
    ...(status === 304 || body === null ? {} : { 'Content-Length': Buffer.byteLength(body) }),
    ...(isEarly ? { Connection: 'close' } : {}),
  });
  if (isEarly) await respondBeforeBody(req, res, body ?? '');
  else if (req.method === 'HEAD' || body === null) res.end();
  else {
    const large = largeBody(body);
    if (large === null) res.end(body);
    else large.pipe(res);
  }
}

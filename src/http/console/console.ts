import type { Context as KoaContext, Middleware } from 'koa';
import { callerBlock } from '../../accounts/caller-addresses.ts';
import { createFailureLimits, createRateLimits } from '../../accounts/rate-limits.ts';
import type { Config } from '../../config/schema.ts';
import { formatListen, parseListen } from '../../config/setting-types.ts';
import { programVersion } from '../../config/version.ts';
import { errorCode } from '../../core/errors.ts';
import { OperatorFault } from '../../core/operator-fault.ts';
import { isRefusal, refuse } from '../../core/refusal.ts';
import { isLoopback } from '../../dns/address-kinds.ts';
import type { Resolver } from '../../dns/resolver.ts';
import type { InstallationAttention } from '../../doctor/installation-attention.ts';
import { presentEvent } from '../../events/feed.ts';
import { linkOfFileName, type MediaFiles } from '../../media/files.ts';
import { createAudit } from '../../people/audit.ts';
import { createPasswordCredentials } from '../../people/credentials.ts';
import { createOidc } from '../../people/oidc.ts';
import { createPasskeys } from '../../people/passkeys.ts';
import { createPasswords } from '../../people/passwords.ts';
import { createPeople } from '../../people/people.ts';
import { createSavedViews } from '../../people/saved-views.ts';
import { createSessions } from '../../people/sessions.ts';
import type { Context } from '../../store/context.ts';
import type { Webhooks } from '../../webhooks/service.ts';
import { createHostCheck } from '../allowed-hosts.ts';
import { type Application, createApplication } from '../application.ts';
import { whenClosed } from '../call-signals.ts';
import { createCallerAddresses, createTrust } from '../caller-address.ts';
import { respond } from '../front.ts';
import { createListener, type HttpConnectionLimits, refuseInvalid } from '../listener.ts';
import { openHandler } from '../open-handler.ts';
import { pageKeysOf } from '../page-keys.ts';
import { oneAtATime } from '../pipelining.ts';
import { mediaHeaders } from '../public/media.ts';
import { refusalResponse } from '../responses.ts';
import type { OpenRoute, Route } from '../route.ts';
import { type NamedOperation, type Operation, type OperationGroup, type RequestState } from '../router.ts';
import { matchesTag } from '../static-page.ts';
import { type AccessRule, type ConsoleAccess, createConsoleAccess } from './access.ts';
import { attentionRoutes } from './attention-routes.ts';
import { auditRoutes } from './audit-routes.ts';
import { createAuditing } from './auditing.ts';
import { IMAGE_PATH, isNavigation, pageHeaders, requestOrigin } from './browser-checks.ts';
import type { ConsoleRoute } from './console-route.ts';
import { type ConsoleCookie, sessionCookie } from './cookies.ts';
import { credentialRoutes } from './credential-routes.ts';
import { createEventStreams, type EventStreams } from './event-stream.ts';
import { figureRoutes } from './figure-routes.ts';
import { hideUrls, withHiddenUrls } from './hidden-urls.ts';
import { OIDC_CALLBACK, oidcPages } from './oidc-pages.ts';
import { passkeyRoutes } from './passkey-routes.ts';
import { peopleRoutes } from './people-routes.ts';
import { frameHandler, previewRoutes } from './previews.ts';
import { createSignIn, type SessionServices, SIGN_IN, sessionRoutes } from './session-routes.ts';
import { createStaticFiles } from './static-files.ts';
import { streamedOperations } from './streamed.ts';
import { testRecipientRoutes } from './test-recipients.ts';
import { viewRoutes } from './view-routes.ts';
import { webhookRoutes } from './webhook-routes.ts';

export type Console = ReturnType<typeof createConsole>;

/** What the console shows and changes. */
export interface ConsoleServices {
  /** For the OpenID Connect provider. */
  resolver: Resolver;
  webhooks: Pick<Webhooks, 'health'>;
  mediaFiles: MediaFiles;
  /** All routes of the API. */
  routes: readonly Route[];
  /** The OpenAPI document of the API. */
  document: OpenRoute;
  /** What needs the operator. */
  installationAttention(): Promise<InstallationAttention>;
  /** Maximum number of concurrent requests of an account; null: unlimited. */
  concurrencyOf(accountId: string): number | null;
  /** The directory with the files of the application. */
  directory: string;
  /** Base URL of the API. */
  apiUrl: string;
  /** Cost of password hashes; lower in tests. */
  passwordLogCost?: number;
}

const LIMITS: Omit<HttpConnectionLimits, 'ofOneCaller'> = {
  headersMs: 15_000,
  requestMs: 120_000,
  keepAliveMs: 65_000,
  checkMs: 2000,
  connections: 2048,
  headerBytes: 32 * 1024,
  writeStallMs: 30_000,
};
const CONNECTIONS_PER_CLIENT = 64;
/** Requests of a person, or of an address without a session. */
const RATE = { burst: 300, perSecond: 50 };

/**
 * The web console on its own listener: the files of the application, sign-in and sessions, and the operations of the API
 * for the person who is signed in. Binds nothing before `listen`, but starts the loop of the event streams now, which
 * `close` ends. Rate limits, body budget and concurrency are separate from those of the API.
 */
export function createConsole(context: Omit<Context, 'registry' | 'expiry'>, services: ConsoleServices) {
  const { config } = context;
  const settings = config.console;
  const isTrustedProxy = createTrust(() => settings.trustedProxies, 'console.trustedProxies');
  const limits: HttpConnectionLimits = {
    ...LIMITS,
    ofOneCaller: (address) =>
      isTrustedProxy(address) || isLoopback(address) ? Number.POSITIVE_INFINITY : CONNECTIONS_PER_CLIENT,
  };
  const listener = createListener(settings.listen, 'console.listen', limits);
  const otherAddress = otherAddressOfLocalhost(settings);
  const other = otherAddress === null ? null : createListener(otherAddress, 'console.listen', limits);
  const url = () => {
    const bound = listener.address();
    return settings.url.endsWith(':0') && bound !== null
      ? settings.url.replace(/:0$/, `:${bound.port}`)
      : settings.url;
  };
  const cookie = sessionCookie(settings.url);
  const isHostAllowed = createHostCheck({ hostname: new URL(settings.url).hostname, hosts: [] });

  const application = createApplication(context, {
    failure: 'connection to the console failed',
    callerAddressOf: createCallerAddresses(() => settings.trustedProxies, 'console.trustedProxies'),
    isHostAllowed,
    isTrustedProxy,
    hostAdvice: (host) =>
      `The console is not served under the host name "${host}": set console.url in the configuration`,
    rateLimits: createRateLimits(context.clock, { setup: RATE, send: RATE }),
    concurrencyOf: (accountId) => (accountId === '' ? null : services.concurrencyOf(accountId)),
    pageKeys: pageKeysOf(context.seal),
    durable: context.writer.durable,
    config,
  });
  const { bodies } = application;
  const parts = { application, cookie, url };
  const { operations, oidc, closeOidc, streamed, streams } = assemble(context, services, parts);
  const allOperations: readonly NamedOperation[] = [
    ...oidc.operations,
    ...streamed.operations,
    ...operations,
  ];
  const handle = application.serve(operations, [
    pageHeaders(),
    staticFiles(services.directory, allOperations),
    oidc.middleware,
    requestOrigin(url),
    streamed.middleware,
  ]);
  const onRequest = oneAtATime(handle);
  for (const { server } of other === null ? [listener] : [listener, other]) {
    server.on('request', onRequest);
    server.on('checkContinue', onRequest);
    server.on('checkExpectation', onRequest);
    server.on('clientError', (error: Error & { code?: string }, socket) => {
      if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && bodies.isUploading(socket)) return;
      refuseInvalid(error, socket);
    });
  }

  return {
    /** Binds `console.listen`; rejects when the address is not available. */
    listen: async (): Promise<void> => {
      await listener.listen();
      await other?.listen().catch((error: unknown) => {
        // Without the address, no other program can listen there.
        if (!(error instanceof OperatorFault) || !NO_SUCH_ADDRESS.has(errorCode(error.cause))) throw error;
      });
    },
    /** The bound address, with port 0 resolved; null before `listen`. */
    address: listener.address,
    /** `console.url`, with port 0 resolved. */
    url,
    /** What answers requests, without the files of the application. */
    operations: allOperations,
    close: async (graceMs: number): Promise<void> => {
      application.stop();
      await Promise.all([streams.stop(), closeOidc()]);
      await Promise.all([listener.close(graceMs), other?.close(graceMs)]);
    },
  };
}

const NO_SUCH_ADDRESS = new Set(['EADDRNOTAVAIL', 'EAFNOSUPPORT']);

/**
 * The other loopback address when the console is opened as `localhost`, null otherwise. Browsers may try either one: another
 * program at the port would have the origin of the console, and with it everything that its pages store.
 */
function otherAddressOfLocalhost({ listen, url }: Config['console']): string | null {
  const address = parseListen(listen);
  if (address === null || address.port === 0 || new URL(url).hostname !== 'localhost') return null;
  const other = OTHER_LOOPBACK[address.host];
  return other === undefined ? null : formatListen({ host: other, port: address.port });
}

const OTHER_LOOPBACK: Readonly<Record<string, string>> = { '127.0.0.1': '::1', '::1': '127.0.0.1' };

interface Parts {
  application: Application;
  cookie: ConsoleCookie;
  url(): string;
}

/** The operations and what they share. */
function assemble(
  context: Omit<Context, 'registry' | 'expiry'>,
  services: ConsoleServices,
  parts: Parts,
): {
  operations: Operation[];
  oidc: OperationGroup;
  closeOidc(): Promise<void>;
  streamed: OperationGroup;
  streams: EventStreams;
} {
  const { clock, tables, config, reader, writer } = context;
  const { resolver, routes, passwordLogCost } = services;
  const { application, cookie, url } = parts;
  const people = createPeople(context);
  const sessions = createSessions(context);
  const audit = createAudit(context);
  const access = createConsoleAccess(context, { people, sessions, cookie });
  const auditing = createAuditing(context, { audit, access });
  const credentials = createPasswordCredentials(context, {
    passwords: createPasswords(passwordLogCost === undefined ? {} : { logCost: passwordLogCost }),
    clientOf: callerBlock,
  });
  const passkeys = createPasskeys(context, { url });
  const oidc = createOidc(context, {
    settings: config.console.oidc,
    resolver,
    callback: () => `${url()}${OIDC_CALLBACK}`,
  });
  const sessionServices: SessionServices = {
    access,
    people,
    sessions,
    auditing,
    failures: createFailureLimits(clock),
    cookie,
    methods: () => ({ password: true, passkey: passkeys.isAvailable(), oidc: oidc.name }),
    operations: Object.fromEntries(routes.map(({ operationId, permission }) => [operationId, permission])),
    version: programVersion(),
    apiUrl: services.apiUrl,
  };
  const signIn = createSignIn(sessionServices);
  const streams = createEventStreams(context, {
    nextSeq: () => tables.events.firstSeqAt(Number.MAX_SAFE_INTEGER),
    read: async (accountId, afterSeq, limit) => {
      const { rows } = await reader.table(accountId, 'events', 'feed', { accountId, afterSeq, limit });
      await writer.durable();
      return rows.map((row) => ({ seq: row.seq, event: hideUrls(presentEvent(row), 'query') }));
    },
  });
  const own: readonly ConsoleRoute[] = [
    ...sessionRoutes(sessionServices, signIn),
    ...credentialRoutes({ access, sessions, credentials, signIn }),
    ...passkeyRoutes({ access, sessions, passkeys, signIn }),
    ...peopleRoutes({ access, people, url }),
    ...auditRoutes({ access, audit, summaryOf: (id) => summaries.get(id) ?? null }),
    ...attentionRoutes(context, { access, installation: services.installationAttention }),
    ...webhookRoutes({ access, webhooks: services.webhooks }),
    ...viewRoutes({ access, views: createSavedViews(context) }),
    ...figureRoutes(context),
    ...testRecipientRoutes(context, { access }),
  ];

  const guarded = (route: Route, rule: AccessRule) =>
    application.guarded(route, (incoming) => access.authenticate(incoming, rule));
  /** An operation of the console itself. */
  const ownOperation = ({ route, rule, ownAudit }: ConsoleRoute): Operation => {
    const { operationId, method } = route;
    const handler = guarded(route, rule);
    return {
      ...route,
      handler: ownAudit ? handler : auditing.wrap(operationId, method !== 'GET', handler),
    };
  };
  /** An operation of the API, for the person who is signed in. */
  const apiOperation = (route: Route): Operation => {
    const { operationId, method, permission, scope, isConfirmed = false, isRead = method === 'GET' } = route;
    const rule = { access: permission, confirmed: isConfirmed, inAccount: scope !== 'operator' };
    const handler = guarded(withHiddenUrls(route, access), rule);
    return {
      method,
      operationId,
      path: `/console/api${route.path}`,
      handler: auditing.wrap(operationId, !isRead, handler),
    };
  };
  const previews = previewRoutes(context, { access });
  const streamed = streamedOperations(context, { access, auditing, audit, streams });
  const described = [...own, previews.create, previews.content].map(({ route }) => route);
  const summaries = new Map(
    [SIGN_IN, ...routes, ...described, ...streamed.operations].map(({ operationId, summary }) => [
      operationId,
      summary,
    ]),
  );
  const previewContent = ownOperation(previews.content);
  return {
    operations: [
      ...own.map(ownOperation),
      ownOperation(previews.create),
      { ...previewContent, handler: frameHandler(previewContent.handler, url) },
      ...routes.map(apiOperation),
      documentOperation(services.document, access),
      imageOperation(services.mediaFiles),
    ],
    oidc: oidcPages(context, { oidc, sessions, signIn, url }),
    closeOidc: oidc.close,
    streamed,
    streams,
  };
}

/** The OpenAPI document, for people with a session: its size would help others to keep the daemon busy. */
function documentOperation(route: OpenRoute, access: ConsoleAccess): Operation {
  return {
    method: 'GET',
    operationId: route.operationId,
    path: `/console/api${route.path}`,
    handler: openHandler(route, (incoming) => {
      const caller = access.authenticate(incoming, { access: 'person' });
      return isRefusal(caller) ? caller : null;
    }),
  };
}

/**
 * `/console/images/{file}`: images of accounts for pages of the console, which show nothing of other hosts. Without a session:
 * elements of a page send no page token, and nobody can guess the address, which mail contains.
 */
function imageOperation(files: MediaFiles): Operation {
  return {
    method: 'GET',
    operationId: 'getConsoleImage',
    path: `${IMAGE_PATH}{file}`,
    handler: async ({ params, req, res, requestId }) => {
      const media = files.find(linkOfFileName(params['file'] ?? ''));
      const missing = () => refusalResponse(refuse('NOT_FOUND', 'There is no such image'), requestId);
      if (media === null) return missing();
      const headers = { ...mediaHeaders(media), ...SHOWN_IN_FRAMES };
      const contentType = headers['Content-Type'];
      if (matchesTag(req.headers['if-none-match'], headers.ETag))
        return { status: 304, contentType: '', body: '', headers };
      if (req.method === 'HEAD') {
        const length = { 'Content-Length': String(media.size) };
        return { status: 200, contentType, body: '', headers: { ...headers, ...length } };
      }
      const file = await files.open(media);
      if (file === null) return missing();
      if (file === 'busy')
        return refusalResponse(
          refuse('UNAVAILABLE', 'Too many images are being sent', { retryAfter: 1 }),
          requestId,
        );
      whenClosed(res, file.close);
      return { status: 200, contentType, body: file.bytes, headers };
    },
  };
}

/** Frames of previews have no origin. */
const SHOWN_IN_FRAMES = { 'Cross-Origin-Resource-Policy': 'cross-origin' } as const;

/** The files of the application, for every path that is not one of `operations`, and for navigation to any page. */
function staticFiles(directory: string, operations: readonly NamedOperation[]): Middleware {
  const files = createStaticFiles(directory);
  /** The first segments of their paths below `/console/`. */
  const segments = new Set(operations.map(({ path }) => path.split('/')[2] ?? ''));
  return async (ctx: KoaContext, next) => {
    const { requestId }: RequestState = ctx.state;
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD') return next();
    if (ctx.path === '/' || ctx.path === '/console') {
      respond(ctx, { status: 308, contentType: '', body: '', headers: { Location: '/console/' } });
      return undefined;
    }
    const path = /^\/console\/(.*)$/s.exec(ctx.path)?.[1];
    const isOperation = segments.has(path?.split('/', 1)[0] ?? '');
    if (path === undefined || (isOperation && !isNavigation(ctx.req, path))) return next();
    respond(ctx, await files.serve(path, ctx.headers, requestId));
    return undefined;
  };
}

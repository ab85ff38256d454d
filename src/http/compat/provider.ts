import type { IncomingMessage } from 'node:http';
import type { Authenticator, Caller } from '../../accounts/authenticate.ts';
import { COMPAT_PROVIDERS } from '../../config/schema.ts';
import { createErrorLog, type Log } from '../../core/log.ts';
import { isRefusal, type Refusal, refuse } from '../../core/refusal.ts';
import { storageFailure } from '../../store/database/failure.ts';
import type { Application } from '../application.ts';
import type { Authenticate } from '../guard.ts';
import { faultRefusal, JSON_TYPE, type RefusalResponse, refusalResponse } from '../responses.ts';
import type { HttpResponse, Route } from '../route.ts';
import type { Handler, Operation } from '../router.ts';

/*
 * Endpoints with the paths, bodies and errors of other providers, so that programs which send through those need another
 * base address and another key only. Each provider is an adapter onto the send path: routes with the checks of all routes
 * (guard.ts), another place of the key, another form of the errors. The routes are not part of our API, and neither of its
 * OpenAPI document nor of the console.
 */

/** The interface of a provider. */
export interface CompatProvider extends ProviderInterface {
  /** What the paths of its requests begin with: `/compat/ses/`. */
  path: string;
}

/** What an adapter defines. */
export interface ProviderInterface {
  routes: readonly Route[];
  authenticate: Authenticate;
  errorOf: ErrorOf;
}

/** An error in the form of a provider. */
export interface CompatError {
  status: number;
  body: object;
  headers?: Record<string, string>;
}

/** The error of the provider that tells its SDK the same as the refusal. */
export type ErrorOf = (refusal: Refusal) => CompatError;

/** The operations of the providers. An unexpected error is logged, and answered in the form of the provider as well. */
export function compatOperations(
  { log }: { log: Log },
  providers: readonly CompatProvider[],
  guarded: Application['guarded'],
): Operation[] {
  const logError = createErrorLog(log);
  return providers.flatMap(({ routes, authenticate, errorOf }) =>
    routes.map((route): Operation => {
      const refused = refusedBy(errorOf);
      const handle = guarded(route, authenticate, refused);
      const handler: Handler = async (incoming) => {
        try {
          return await handle(incoming);
        } catch (error) {
          const { requestId } = incoming;
          const { operationId } = route;
          logError(
            storageFailure(error)?.kind ?? null,
            { err: error, requestId, operationId },
            'request failed',
          );
          return refused(faultRefusal(error), requestId);
        }
      };
      return { ...route, handler };
    }),
  );
}

/**
 * Returns the form of refusals by path: that of the provider for all paths that begin as its own, also unknown ones. Those of
 * a provider that is not enabled name the setting.
 */
export function refusalsOf(providers: readonly CompatProvider[]): (path: string) => RefusalResponse {
  const enabled = providers.map(({ path, errorOf }) => ({ path, refused: refusedBy(errorOf) }));
  const others = COMPAT_PROVIDERS.map((name) => ({
    path: `/compat/${name}/`,
    refused: refusedByDisabled(name),
  }));
  const forms = [...enabled, ...others];
  return (path) => forms.find((form) => path.startsWith(form.path))?.refused ?? refusalResponse;
}

function refusedByDisabled(name: string): RefusalResponse {
  const advice = `add "${name}" to compat.enable in the configuration`;
  return (refusal, requestId, headers) => {
    const { code, message } = refusal;
    const named = code === 'NOT_FOUND' ? refuse(code, `${message}: ${advice}`) : refusal;
    return refusalResponse(named, requestId, headers);
  };
}

function refusedBy(errorOf: ErrorOf): RefusalResponse {
  return (refusal, requestId, headers) =>
    errorResponse(errorOf(refusal), refusalResponse(refusal, requestId, headers));
}

/** The error, with the header fields of our own response: `Retry-After`, rate limits. */
function errorResponse(error: CompatError, ours: HttpResponse): HttpResponse {
  return {
    status: error.status,
    contentType: JSON_TYPE,
    body: JSON.stringify(error.body),
    headers: { ...ours.headers, ...error.headers },
  };
}

/**
 * Authentication by a key at the place where the provider has it. Routes of the scope `transactional` accept marketing keys,
 * too: these interfaces have the same operations for all mail.
 */
export function bySecret(
  authenticator: Authenticator,
  secretOf: (req: IncomingMessage) => string,
): Authenticate {
  return ({ req, from }, route) => {
    const credentials = { secret: secretOf(req), accountId: null, from: from() };
    return authenticateSender((scope) => authenticator.authenticate(credentials, scope), route.scope);
  };
}

/** The caller whom `authenticate` returns for the scope of a route, or for `marketing` in place of `transactional`. */
export function authenticateSender(
  authenticate: (scope: Route['scope']) => Caller | Refusal,
  scope: Route['scope'],
): Caller | Refusal {
  const caller = authenticate(scope);
  if (!isRefusal(caller) || scope !== 'transactional' || caller.code !== 'INSUFFICIENT_SCOPE') return caller;
  return authenticate('marketing');
}

/** The value of a header; '' if it is missing or was sent twice: Node joins both, and no key has that form. */
export function headerOf(req: IncomingMessage, name: string): string {
  const value = req.headers[name];
  return typeof value === 'string' ? value : '';
}

/** The value of `Authorization` after its scheme, in lower case; '' for another scheme. */
export function authorizationOf(req: IncomingMessage, scheme: string): string {
  if (req.headersDistinct['authorization']?.length !== 1) return '';
  const value = headerOf(req, 'authorization');
  const isScheme = value.slice(0, scheme.length + 1).toLowerCase() === `${scheme} `;
  return isScheme ? value.slice(scheme.length + 1).trim() : '';
}

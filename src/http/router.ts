import type { IncomingMessage, ServerResponse } from 'node:http';
import { Router } from '@koa/router';
import type { Context, Middleware } from 'koa';
import { invalid, refuse } from '../core/refusal.ts';
import type { RefusalResponse } from './responses.ts';
import type { CallerAddress, HttpResponse } from './route.ts';

/*
 * Finds the handler for a path and method. The router matches paths, a table under each path the methods, so that an
 * unknown method of a known path gets a 405 with the correct `Allow` in the error envelope. Trailing slashes and case
 * are significant.
 */

/** A request for which a handler was found. */
export interface RoutedRequest {
  req: IncomingMessage;
  res: ServerResponse;
  requestId: string;
  /** Decoded path parameters. */
  params: Record<string, string>;
  /** The raw query, without `?`. */
  search: string;
  from: () => CallerAddress;
}

/** Null: the client has disconnected. */
export type Handler = (incoming: RoutedRequest) => Promise<HttpResponse | null>;

export interface NamedOperation {
  method: string;
  /** `/web-setup/domains/{domainId}`. */
  path: string;
  operationId: string;
}

export interface Operation extends NamedOperation {
  handler: Handler;
}

/** Operations that do not use the router: they redirect, or stream their responses. */
export interface OperationGroup {
  operations: readonly (NamedOperation & { summary: string })[];
  middleware: Middleware;
}

/** State of a request in progress. */
export interface RequestState {
  requestId: string;
  /** For metrics and log; '' when no operation matches. */
  operationId: string;
  from: () => CallerAddress;
  /** The response for a refusal before the handler of an operation. */
  refused: RefusalResponse;
}

export type WriteResponse = (ctx: Context, reply: HttpResponse | null) => void;

/** `methods`: all that Node supports; one without an operation gets a 405, not a 404. */
export function createRouter(
  operations: Operation[],
  respond: WriteResponse,
  methods: readonly string[],
): Middleware {
  const router = new Router({ strict: true, sensitive: true, exclusive: 'specificity' });
  /** The paths without parameters: the router would compare each request with the patterns of all paths. */
  const fixed = new Map<string, (ctx: Context) => Promise<void>>();
  for (const [path, ofPath] of byPath(operations)) {
    const table = new Map(ofPath.map((operation) => [operation.method, operation]));
    const get = table.get('GET');
    if (get !== undefined && !table.has('HEAD')) table.set('HEAD', get);
    const allow = [...table.keys(), 'OPTIONS'].join(', ');
    const handle = async (ctx: Context) => respond(ctx, await dispatch(ctx, table, allow));
    if (path.includes('{')) router.register(routerPath(path), [...methods], handle);
    else fixed.set(path, handle);
  }
  // The context type of the router is narrower than Koa's; the router creates that context itself.
  const routed = router.routes() as Middleware;
  return (ctx, next) => fixed.get(ctx.path)?.(ctx) ?? routed(ctx, next);
}

async function dispatch(
  ctx: Context,
  table: Map<string, Operation>,
  allow: string,
): Promise<HttpResponse | null> {
  const state: RequestState = ctx.state;
  if (ctx.method === 'OPTIONS') {
    return { status: 204, contentType: '', body: '', headers: { Allow: allow } };
  }
  const operation = table.get(ctx.method);
  if (operation === undefined) {
    const refusal = refuse('METHOD_NOT_ALLOWED', `The path does not support ${ctx.method}; use ${allow}`);
    return state.refused(refusal, state.requestId, { Allow: allow });
  }
  state.operationId = operation.operationId;
  if (!isDecodable(ctx.path)) {
    return state.refused(invalid('path', 'has a % that is not a percent-encoding of UTF-8'), state.requestId);
  }
  return operation.handler({
    req: ctx.req,
    res: ctx.res,
    requestId: state.requestId,
    params: ctx['params'] ?? {},
    search: ctx.querystring,
    from: state.from,
  });
}

function byPath(operations: Operation[]): Map<string, Operation[]> {
  const paths = new Map<string, Operation[]>();
  for (const operation of operations) {
    const ofPath = paths.get(operation.path) ?? [];
    if (ofPath.some((other) => other.method === operation.method)) {
      throw new Error(`two operations for ${operation.method} ${operation.path}`);
    }
    paths.set(operation.path, [...ofPath, operation]);
  }
  rejectAmbiguous([...paths.keys()]);
  return paths;
}

/** `/x/{id}` and `/x/{name}` are the same path to a client and must use the same name. */
function rejectAmbiguous(paths: string[]): void {
  const shapes = new Map<string, string>();
  for (const path of paths) {
    const shape = path.replaceAll(/\{[^{}]*\}/g, '{}');
    const other = shapes.get(shape);
    if (other !== undefined) throw new Error(`${path} and ${other} are the same path`);
    shapes.set(shape, path);
  }
}

/** `{domainId}` in the syntax of the router: `:domainId`. */
function routerPath(path: string): string {
  return path.replaceAll(/\{([A-Za-z0-9_]+)\}/g, ':$1');
}

function isDecodable(path: string): boolean {
  if (!path.includes('%')) return true;
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    // The only possible error is a malformed escape.
    return false;
  }
}

import type { IncomingMessage, ServerResponse } from 'node:http';
import { Router } from '@koa/router';
import type { Context, Middleware } from 'koa';
import { invalid, refuse } from '../core/refusal.ts';
import { type Reply, refusalReply } from './answers.ts';
import type { CallerAddress } from './route.ts';

/**
 * Which handler a path and method belong to. Paths are matched by the router, methods by a table under each
 * path: so an unknown method on a known path is a 405 with a true `Allow`, and everything answers in the
 * one envelope. Trailing slashes and letter case count.
 */
export interface Incoming {
  req: IncomingMessage;
  res: ServerResponse;
  requestId: string;
  /** Decoded path parameters. */
  params: Record<string, string>;
  /** The query as sent, without `?`. */
  search: string;
  from: () => CallerAddress;
}

/** Null: the caller hung up, there is nobody to answer. */
export type Handler = (incoming: Incoming) => Promise<Reply | null>;

export interface Operation {
  method: string;
  /** `/web-setup/domains/{domainId}`. */
  path: string;
  operationId: string;
  handler: Handler;
}

/** What the server keeps about a request while it is worked on. */
export interface RequestState {
  requestId: string;
  /** For metrics and log, '' when no operation was found. */
  operationId: string;
  from: () => CallerAddress;
}

export type Respond = (ctx: Context, reply: Reply | null) => void;

/** Every method that Node knows: what has no operation is answered 405, not 404. */
export function createRouter(
  operations: Operation[],
  respond: Respond,
  methods: readonly string[],
): Middleware {
  const router = new Router({ strict: true, sensitive: true, exclusive: 'specificity' });
  for (const [path, ofPath] of byPath(operations)) {
    const table = new Map(ofPath.map((operation) => [operation.method, operation]));
    const get = table.get('GET');
    if (get !== undefined && !table.has('HEAD')) table.set('HEAD', get);
    const allow = [...table.keys(), 'OPTIONS'].join(', ');
    router.register(routerPath(path), [...methods], async (ctx) => {
      respond(ctx, await dispatch(ctx, table, allow));
    });
  }
  // The router's own context type is narrower than Koa's; it makes that context itself.
  return router.routes() as Middleware;
}

async function dispatch(ctx: Context, table: Map<string, Operation>, allow: string): Promise<Reply | null> {
  const state: RequestState = ctx.state;
  if (ctx.method === 'OPTIONS') {
    return { status: 204, contentType: '', body: '', headers: { Allow: allow } };
  }
  const operation = table.get(ctx.method);
  if (operation === undefined) {
    const refusal = refuse('METHOD_NOT_ALLOWED', `${ctx.method} is not allowed here, only ${allow}`);
    return refusalReply(refusal, state.requestId, { Allow: allow });
  }
  state.operationId = operation.operationId;
  if (!isDecodable(ctx.path)) {
    return refusalReply(invalid('path', 'has a % that is no percent-encoding of UTF-8'), state.requestId);
  }
  return operation.handler({
    req: ctx.req,
    res: ctx.res,
    requestId: state.requestId,
    params: ctx['params'],
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
  refuseAmbiguous([...paths.keys()]);
  return paths;
}

/** `/x/{id}` and `/x/{name}` are one path to a caller, so they must be written as one. */
function refuseAmbiguous(paths: string[]): void {
  const shapes = new Map<string, string>();
  for (const path of paths) {
    const shape = path.replaceAll(/\{[^}]*\}/g, '{}');
    const other = shapes.get(shape);
    if (other !== undefined) throw new Error(`${path} and ${other} are the same path`);
    shapes.set(shape, path);
  }
}

/** `{domainId}` is `:domainId` to the router. */
function routerPath(path: string): string {
  return path.replaceAll(/\{([A-Za-z0-9_]+)\}/g, ':$1');
}

function isDecodable(path: string): boolean {
  if (!path.includes('%')) return true;
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    // The only error there is: a malformed escape.
    return false;
  }
}

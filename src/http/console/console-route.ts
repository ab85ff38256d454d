import type * as z from 'zod';
import { type HttpMethod, type Route, type RouteDescription, routesOf } from '../route.ts';
import type { AccessRule } from './access.ts';

/** An operation of the console itself: sign-in, people, audit log. It is not part of the public API. */
export interface ConsoleRoute {
  route: Route;
  rule: AccessRule;
  ownAudit: boolean;
}

interface ConsoleRouteDescription<
  Path extends string,
  Params extends z.ZodRawShape,
  Query extends z.ZodObject,
  Body extends z.ZodType,
> extends AccessRule,
    Pick<RouteDescription<Path, Params, Query, Body>, 'params' | 'query' | 'body' | 'handle'> {
  /** As in the audit log, without `console.`. */
  operationId: string;
  /** Its English name in the audit log; those of other languages are the texts `operation.console.<id>` of the application. */
  summary: string;
  /** Bytes of the body. */
  limit?: number;
  /** Whether the handler writes its audit record itself, or none is needed. */
  ownAudit?: boolean;
}

const MAX_BODY_BYTES = 64 * 1024;
const route = routesOf({ tag: '', scope: 'setup' });

/** Describes an operation of the console: `consoleRoute('GET /console/session', { … })`. */
export function consoleRoute<
  const Path extends string,
  Query extends z.ZodObject,
  Body extends z.ZodType,
  Params extends z.ZodRawShape,
>(
  operation: `${HttpMethod} ${Path}`,
  description: ConsoleRouteDescription<Path, Params, Query, Body>,
): ConsoleRoute {
  const {
    operationId,
    summary,
    params,
    query,
    body,
    limit = MAX_BODY_BYTES,
    handle,
    ...options
  } = description;
  const { ownAudit = false, ...rule } = options;
  const input = {
    ...(params === undefined ? {} : { params }),
    ...(query === undefined ? {} : { query }),
    ...(body === undefined ? {} : { body }),
  };
  return {
    rule,
    ownAudit,
    route: route(operation, { ...input, operationId: `console.${operationId}`, summary, limit, handle }),
  };
}

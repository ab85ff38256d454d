import type * as z from 'zod';
import { type Route, type RouteDescription, route } from '../route.ts';
import type { Access } from './access.ts';
import type { ConsoleOperation } from './permissions.ts';

/** An operation of the console itself: sign-in, people, audit log. It is not part of the public API. */
export interface ConsoleRoute {
  route: Route;
  access: Access;
  confirmed: boolean;
  /** See `AccessRule`. */
  addsCredential: boolean;
  accountOptional: boolean;
  /** Whether the handler writes its audit record itself, or none is needed. */
  ownAudit: boolean;
  /** Reads that are recorded: exports. */
  auditReads: boolean;
  /** See `AccessRule`. */
  secretInPath: boolean;
}

export interface ConsoleRouteDescription<
  Params extends z.ZodObject,
  Query extends z.ZodObject,
  Body extends z.ZodType,
> extends Pick<
    RouteDescription<Params, Query, Body>,
    'method' | 'path' | 'params' | 'query' | 'body' | 'handle'
  > {
  operationId: ConsoleOperation;
  access: Access;
  confirmed?: boolean;
  addsCredential?: boolean;
  accountOptional?: boolean;
  ownAudit?: boolean;
  auditReads?: boolean;
  secretInPath?: boolean;
  /** Bytes of the body. */
  limit?: number;
}

const MAX_BODY_BYTES = 64 * 1024;

/** `path`: below `/console`; `operationId`: as the audit log names it, without `console.`. */
export function consoleRoute<Params extends z.ZodObject, Query extends z.ZodObject, Body extends z.ZodType>({
  access,
  confirmed = false,
  addsCredential = false,
  accountOptional = false,
  ownAudit = false,
  auditReads = false,
  secretInPath = false,
  limit = MAX_BODY_BYTES,
  ...description
}: ConsoleRouteDescription<Params, Query, Body>): ConsoleRoute {
  return {
    access,
    confirmed,
    addsCredential,
    accountOptional,
    ownAudit,
    auditReads,
    secretInPath,
    route: route({
      ...description,
      path: `/console${description.path}`,
      operationId: `console.${description.operationId}`,
      tag: '',
      summary: '',
      scope: 'setup',
      limit,
      responses: {},
      refusals: [],
    }),
  };
}

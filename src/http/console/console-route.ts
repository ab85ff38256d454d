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
  /** As the audit log names it, without `console.`. */
  operationId: ConsoleOperation;
  /** Bytes of the body. */
  limit?: number;
  /** Whether the handler writes its audit record itself, or none is needed. */
  ownAudit?: boolean;
}

/** Operations of the console itself, as the audit log names them without `console.`. */
export type ConsoleOperation =
  | 'signIn'
  | 'signOut'
  | 'signInWithLink'
  | 'signInWithPassword'
  | 'signInWithPasskey'
  | 'confirmSession'
  | 'confirmSessionWithPasskey'
  | 'beginPasskey'
  | 'setPassword'
  | 'removePassword'
  | 'beginTotp'
  | 'setTotp'
  | 'listMyPasskeys'
  | 'beginMyPasskey'
  | 'addMyPasskey'
  | 'removeMyPasskey'
  | 'getSession'
  | 'getMe'
  | 'getAttention'
  | 'markAttentionSeen'
  | 'getWebhookHealth'
  | 'countMessages'
  | 'listViews'
  | 'saveView'
  | 'deleteView'
  | 'getAudience'
  | 'getCampaignFigures'
  | 'updateMe'
  | 'listMySessions'
  | 'revokeMySession'
  | 'revokeMyOtherSessions'
  | 'listPeople'
  | 'invitePerson'
  | 'updatePerson'
  | 'removePerson'
  | 'recoverPerson'
  | 'sendTestMessage'
  | 'createPreview'
  | 'getPreview'
  | 'listAuditRecords'
  | 'exportAuditRecords'
  | 'exportContacts'
  | 'stream';

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
  const { operationId, params, query, body, limit = MAX_BODY_BYTES, handle, ...options } = description;
  const { ownAudit = false, ...rule } = options;
  const input = {
    ...(params === undefined ? {} : { params }),
    ...(query === undefined ? {} : { query }),
    ...(body === undefined ? {} : { body }),
  };
  return {
    rule,
    ownAudit,
    route: route(operation, { ...input, operationId: `console.${operationId}`, summary: '', limit, handle }),
  };
}

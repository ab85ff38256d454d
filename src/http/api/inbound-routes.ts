import * as z from 'zod';
import { iso } from '../../core/clock.ts';
import { isRefusal } from '../../core/refusal.ts';
import type { Inbound } from '../../inbound/inbound.ts';
import { matchOf } from '../../inbound/routes.ts';
import { type InboundRouteRow, ROUTE_ACTIONS, SPAM_POLICIES } from '../../store/inbound/inbound-routes.ts';
import { mapResult, type Route, routesOf } from '../route.ts';
import { definedFields, messageResult, resourceName } from './fields.ts';
import { nameSearch, pageOf, pagesBySeq, paging, seqEnd } from './paging.ts';

/* `/web-setup/inbound-routes`: addresses whose mail the account receives. */

const route = routesOf({ tag: 'Inbound mail', scope: 'setup', permissions: ['read', 'develop'] });

const match = z
  .string()
  .min(3)
  .max(320)
  .describe(
    'An address, or `*` and a host for every address there without a route of its own: `support@in.example.com`, `*@in.example.com`. The host is the domain or a name below it, whose MX record points to this server.',
  );
const action = z
  .enum(ROUTE_ACTIONS)
  .describe(
    '`store`: the mail is stored, and the webhooks that subscribe to `email_received` have its event. `webhook`: so has the webhook `webhookId`, whatever it subscribes to.',
  );
const spamPolicy = z
  .enum(SPAM_POLICIES)
  .describe(
    'What happens to mail that fails the DMARC policy `reject` of its author: `mark` receives it with the results, `reject` refuses it.',
  );

const inboundRoute = z
  .object({
    routeId: z.string(),
    name: z.string(),
    match,
    domainId: z.string(),
    action,
    webhookId: z.string().nullable().describe('That of the action `webhook`.'),
    spamPolicy,
    isActive: z.boolean().describe('Mail for an inactive route is refused.'),
    createdAt: z.iso.datetime(),
    updatedAt: z.iso.datetime(),
  })
  .meta({ id: 'InboundRoute' });
const result = z.object({ route: inboundRoute }).meta({ id: 'InboundRouteResult' });

const EXAMPLE: z.output<typeof inboundRoute> = {
  routeId: 'route_1769860800000_7q9w2e4r6t8y',
  name: 'Support',
  match: 'support@in.example.com',
  domainId: 'domain_1769860800000_4g6h8j1k3l5z',
  action: 'store',
  webhookId: null,
  spamPolicy: 'mark',
  isActive: true,
  createdAt: '2026-01-31T12:00:00.000Z',
  updatedAt: '2026-01-31T12:00:00.000Z',
};
const one = { data: result, example: { route: EXAMPLE } };

const webhookId = z.string().max(100).nullish();
/** What creates a route. */
export const inboundRouteInput = z
  .object({
    name: resourceName,
    match,
    domainId: z.string().max(100),
    action: action.default('store'),
    webhookId,
    spamPolicy: spamPolicy.default('mark'),
    isActive: z.boolean().default(true),
  })
  .meta({ id: 'InboundRouteInput' });
/** What changes a route. */
export const inboundRoutePatch = z
  .object({
    name: resourceName.optional(),
    match: match.optional(),
    domainId: z.string().max(100).optional(),
    action: action.optional(),
    webhookId,
    spamPolicy: spamPolicy.optional(),
    isActive: z.boolean().optional(),
  })
  .meta({ id: 'InboundRoutePatch' });

export function presentInboundRoute(row: InboundRouteRow): z.output<typeof inboundRoute> {
  return {
    routeId: row.route_id,
    name: row.name,
    match: matchOf(row),
    domainId: row.domain_id,
    action: row.action,
    webhookId: row.webhook_id,
    spamPolicy: row.spam_policy,
    isActive: row.is_active === 1,
    createdAt: iso(row.created_at),
    updatedAt: iso(row.updated_at),
  };
}

const asResult = (row: InboundRouteRow) => ({ route: presentInboundRoute(row) });

export function inboundRouteRoutes({ inbound: { routes } }: { inbound: Inbound }): Route[] {
  const update = (method: 'PUT' | 'PATCH', operationId: string) =>
    route(`${method} /web-setup/inbound-routes/{routeId}`, {
      operationId,
      summary: 'Update an inbound route',
      description: 'Replaces the fields that are given.',
      body: inboundRoutePatch,
      example: { spamPolicy: 'reject' },
      response: { description: 'The updated route.', ...one },
      refusals: ['INBOUND_ROUTE_NOT_FOUND', 'INBOUND_ROUTE_EXISTS', 'DOMAIN_NOT_FOUND', 'WEBHOOK_NOT_FOUND'],
      handle: async ({ caller, params, body }) =>
        mapResult(await routes.update(caller.accountId, params.routeId, definedFields(body)), asResult),
    });
  return [
    route('GET /web-setup/inbound-routes', {
      operationId: 'listInboundRoutes',
      summary: 'List inbound routes, newest first',
      query: z.object({ search: nameSearch, ...paging }),
      page: pagesBySeq('inbound-routes'),
      response: pageOf('routes', inboundRoute, EXAMPLE),
      narrowBy: ['limit'],
      handle: async ({ caller: { accountId }, query: { search, limit }, after }) => {
        const page = await routes.list({ accountId, beforeSeq: after, limit, search });
        return { routes: page.rows.map(presentInboundRoute), ...seqEnd(page) };
      },
    }),
    route('POST /web-setup/inbound-routes', {
      operationId: 'createInboundRoute',
      summary: 'Create an inbound route',
      description:
        'Mail is received while the domain is verified and the MX record of the host points to this server; `GET /web-setup/domains/{domainId}/dns-records` lists the record.',
      body: inboundRouteInput,
      example: { name: EXAMPLE.name, match: EXAMPLE.match, domainId: EXAMPLE.domainId },
      response: { status: 201, description: 'The created route.', ...one },
      refusals: ['LIMIT_REACHED', 'INBOUND_ROUTE_EXISTS', 'DOMAIN_NOT_FOUND', 'WEBHOOK_NOT_FOUND'],
      handle: async ({ caller, body }) => mapResult(await routes.create(caller.accountId, body), asResult),
    }),
    route('GET /web-setup/inbound-routes/{routeId}', {
      operationId: 'getInboundRoute',
      summary: 'Get an inbound route',
      response: { description: 'The route.', ...one },
      refusals: ['INBOUND_ROUTE_NOT_FOUND'],
      handle: ({ caller, params }) => mapResult(routes.get(caller.accountId, params.routeId), asResult),
    }),
    update('PUT', 'replaceInboundRouteFields'),
    update('PATCH', 'updateInboundRoute'),
    route('DELETE /web-setup/inbound-routes/{routeId}', {
      operationId: 'deleteInboundRoute',
      summary: 'Delete an inbound route',
      response: {
        description: 'The route was deleted. Mail that was received stays.',
        data: messageResult,
        example: { message: 'The inbound route has been deleted.' },
      },
      refusals: ['INBOUND_ROUTE_NOT_FOUND'],
      handle: async ({ caller, params }) => {
        const removed = await routes.remove(caller.accountId, params.routeId);
        return isRefusal(removed) ? removed : { message: 'The inbound route has been deleted.' };
      },
    }),
  ];
}

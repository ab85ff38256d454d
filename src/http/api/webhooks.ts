import * as z from 'zod';
import { isRefusal } from '../../core/refusal.ts';
import type { Webhooks } from '../../webhooks/service.ts';
import { type Route, type RouteDescription, route } from '../route.ts';
import { definedFields } from './fields.ts';
import { pageEndFields, pageOfAll, pagingWide } from './paging.ts';
import { WEBHOOK_EXAMPLES, webhook, webhookDetail, webhookFields } from './webhook-schemas.ts';

/** `/web-setup/webhooks`: endpoints that receive the events of an account. */
export function webhookRoutes({ webhooks }: { webhooks: Webhooks }): Route[] {
  return [...collectionRoutes(webhooks), ...memberRoutes(webhooks)];
}

const COMMON = { tag: 'Webhooks', scope: 'setup' } satisfies Partial<RouteDescription>;
const params = z.object({ webhookId: z.string() });

function collectionRoutes(webhooks: Webhooks): Route[] {
  return [
    route({
      ...COMMON,
      method: 'GET',
      path: '/web-setup/webhooks',
      operationId: 'listWebhooks',
      summary: 'List webhooks',
      query: z.object({
        includeInactive: z.stringbool().default(false).describe('Includes disabled webhooks.'),
        ...pagingWide,
      }),
      responses: {
        200: {
          description: 'A page of webhooks, oldest first.',
          data: z.object({ webhooks: z.array(webhook), ...pageEndFields }),
          example: { webhooks: [WEBHOOK_EXAMPLES.webhook], count: 1 },
        },
      },
      refusals: [],
      handle: ({ caller, query }) => {
        const all = webhooks.list(caller.accountId, query);
        const page = pageOfAll('webhooks', all, query, ({ webhookId }) => webhookId);
        return isRefusal(page) ? page : { status: 200, data: { webhooks: page.rows, ...page.end } };
      },
    }),
    route({
      ...COMMON,
      method: 'POST',
      path: '/web-setup/webhooks',
      operationId: 'createWebhook',
      summary: 'Create a webhook',
      description:
        'Every new event of these kinds is sent to the URL as a POST request, signed according to Standard Webhooks (headers `webhook-id`, `webhook-timestamp`, `webhook-signature`). A 2xx response within 15 s is a success; otherwise the call is retried after 5 s, 30 s, 2 min, 10 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h and 24 h. An event may arrive more than once, with the same `webhook-id`, and in any order. Redirects are not followed. A webhook is disabled if its endpoint responds with 410, or if every call fails for 5 days.',
      body: z.object(webhookFields).meta({ id: 'WebhookInput' }),
      example: {
        url: WEBHOOK_EXAMPLES.webhook.url,
        events: WEBHOOK_EXAMPLES.webhook.events,
        name: WEBHOOK_EXAMPLES.webhook.name,
      },
      responses: {
        201: { description: 'The created webhook.', data: webhookDetail, example: WEBHOOK_EXAMPLES.detail },
      },
      refusals: ['LIMIT_REACHED'],
      handle: async ({ caller, body }) => {
        const created = await webhooks.create(caller.accountId, body);
        return isRefusal(created) ? created : { status: 201, data: created };
      },
    }),
  ];
}

function memberRoutes(webhooks: Webhooks): Route[] {
  const update = (method: 'PUT' | 'PATCH', operationId: string) =>
    route({
      ...COMMON,
      method,
      path: '/web-setup/webhooks/{webhookId}',
      operationId,
      summary: 'Update a webhook',
      description:
        'Replaces the fields that are given. A webhook that is enabled again receives the events that were pending when it was disabled; events of the time in between can be replayed.',
      params,
      body: z.object(webhookFields).partial().meta({ id: 'WebhookPatch' }),
      example: { events: ['*'] },
      stores: ({ isActive }) => isActive !== false,
      responses: {
        200: { description: 'The updated webhook.', data: webhookDetail, example: WEBHOOK_EXAMPLES.detail },
      },
      refusals: ['WEBHOOK_NOT_FOUND'],
      handle: async ({ caller, params, body }) => {
        const updated = await webhooks.update(caller.accountId, params.webhookId, definedFields(body));
        return isRefusal(updated) ? updated : { status: 200, data: updated };
      },
    });
  return [
    route({
      ...COMMON,
      method: 'GET',
      path: '/web-setup/webhooks/{webhookId}',
      operationId: 'getWebhook',
      summary: 'Get a webhook with its secret',
      params,
      responses: {
        200: { description: 'The webhook.', data: webhookDetail, example: WEBHOOK_EXAMPLES.detail },
      },
      refusals: ['WEBHOOK_NOT_FOUND'],
      handle: ({ caller, params }) => {
        const found = webhooks.get(caller.accountId, params.webhookId);
        return isRefusal(found) ? found : { status: 200, data: found };
      },
    }),
    update('PUT', 'updateWebhook'),
    update('PATCH', 'patchWebhook'),
    route({
      ...COMMON,
      method: 'DELETE',
      path: '/web-setup/webhooks/{webhookId}',
      operationId: 'deleteWebhook',
      summary: 'Delete a webhook',
      description: 'Takes effect immediately. Pending deliveries are dropped.',
      params,
      responses: {
        200: {
          description: 'The webhook was deleted.',
          data: z.object({ message: z.string(), webhookId: z.string() }),
          example: { message: 'The webhook has been deleted.', webhookId: WEBHOOK_EXAMPLES.id },
        },
      },
      refusals: ['WEBHOOK_NOT_FOUND'],
      handle: async ({ caller, params: { webhookId } }) => {
        const removed = await webhooks.remove(caller.accountId, webhookId);
        return isRefusal(removed)
          ? removed
          : { status: 200, data: { message: 'The webhook has been deleted.', webhookId } };
      },
    }),
    route({
      ...COMMON,
      method: 'POST',
      path: '/web-setup/webhooks/{webhookId}/rotate-secret',
      operationId: 'rotateWebhookSecret',
      summary: 'Rotate the secret of a webhook',
      description:
        'The old secret remains valid for 24 hours: calls have a signature of each secret, so that the endpoint can switch at any time in between. At most five old secrets are valid at a time.',
      params,
      responses: {
        200: {
          description: 'The webhook with its new secret.',
          data: webhookDetail,
          example: WEBHOOK_EXAMPLES.detail,
        },
      },
      refusals: ['WEBHOOK_NOT_FOUND'],
      handle: async ({ caller, params }) => {
        const rotated = await webhooks.rotateSecret(caller.accountId, params.webhookId);
        return isRefusal(rotated) ? rotated : { status: 200, data: rotated };
      },
    }),
  ];
}

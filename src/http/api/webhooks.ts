import { z } from 'zod';
import { isRefusal } from '../../core/refusal.ts';
import type { Webhooks } from '../../webhooks/service.ts';
import { type Route, type RouteDescription, route } from '../route.ts';
import { given } from './given.ts';
import { pageEndForm, pageOfAll, pagingWide } from './paging.ts';
import { EXAMPLES, webhook, webhookDetail, webhookFields } from './webhook-forms.ts';

/** `/web-setup/webhooks`: endpoints that receive the events of an account. */
export function webhookRoutes({ webhooks }: { webhooks: Webhooks }): Route[] {
  return [...allWebhooks(webhooks), ...oneWebhook(webhooks)];
}

const COMMON = { tag: 'Webhooks', scope: 'setup' } satisfies Partial<RouteDescription>;
const params = z.object({ webhookId: z.string() });

function allWebhooks(webhooks: Webhooks): Route[] {
  return [
    route({
      ...COMMON,
      method: 'GET',
      path: '/web-setup/webhooks',
      operationId: 'listWebhooks',
      summary: 'List active webhooks',
      query: z.object({
        includeInactive: z.stringbool().default(false).describe('Include inactive webhooks.'),
        ...pagingWide,
      }),
      answers: {
        200: {
          description: 'Oldest first.',
          data: z.object({ webhooks: z.array(webhook), ...pageEndForm }),
          example: { webhooks: [EXAMPLES.webhook], count: 1 },
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
        'Each further event of these kinds is sent to the URL in a POST request that is signed according to Standard Webhooks (header fields `webhook-id`, `webhook-timestamp`, `webhook-signature`). A 2xx response within 15 s is a success; otherwise the delivery is retried after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h and 24 h. An event can arrive more than once, with the same `webhook-id`, and in any order. Redirects are not followed. A webhook is disabled when its endpoint responds with 410, and when all calls failed for 5 days.',
      body: z.object(webhookFields),
      example: { url: EXAMPLES.webhook.url, events: EXAMPLES.webhook.events, name: EXAMPLES.webhook.name },
      answers: { 201: { description: 'Created.', data: webhookDetail, example: EXAMPLES.whole } },
      refusals: ['LIMIT_REACHED'],
      handle: async ({ caller, body }) => {
        const created = await webhooks.create(caller.accountId, body);
        return isRefusal(created) ? created : { status: 201, data: created };
      },
    }),
  ];
}

function oneWebhook(webhooks: Webhooks): Route[] {
  const change = (method: 'PUT' | 'PATCH', operationId: string) =>
    route({
      ...COMMON,
      method,
      path: '/web-setup/webhooks/{webhookId}',
      operationId,
      summary: 'Update a webhook',
      description:
        'Given fields are replaced, others are not changed. When a webhook is enabled again, deliveries that were pending when it was disabled are sent; events since then can be replayed.',
      params,
      body: z.object(webhookFields).partial(),
      example: { events: ['*'] },
      answers: {
        200: { description: 'The updated webhook.', data: webhookDetail, example: EXAMPLES.whole },
      },
      refusals: ['WEBHOOK_NOT_FOUND'],
      handle: async ({ caller, params, body }) => {
        const changed = await webhooks.update(caller.accountId, params.webhookId, given(body));
        return isRefusal(changed) ? changed : { status: 200, data: changed };
      },
    });
  return [
    route({
      ...COMMON,
      method: 'GET',
      path: '/web-setup/webhooks/{webhookId}',
      operationId: 'getWebhook',
      summary: 'Retrieve a webhook with its secret',
      params,
      answers: { 200: { description: 'The webhook.', data: webhookDetail, example: EXAMPLES.whole } },
      refusals: ['WEBHOOK_NOT_FOUND'],
      handle: ({ caller, params }) => {
        const found = webhooks.get(caller.accountId, params.webhookId);
        return isRefusal(found) ? found : { status: 200, data: found };
      },
    }),
    change('PUT', 'updateWebhook'),
    change('PATCH', 'patchWebhook'),
    route({
      ...COMMON,
      method: 'DELETE',
      path: '/web-setup/webhooks/{webhookId}',
      operationId: 'deleteWebhook',
      summary: 'Delete a webhook',
      description: 'Takes effect immediately; pending deliveries are deleted.',
      params,
      answers: {
        200: {
          description: 'Deleted.',
          data: z.object({ message: z.string(), webhookId: z.string() }),
          example: { message: 'The webhook has been deleted.', webhookId: EXAMPLES.id },
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
        'For 24 hours calls are signed with both the old and the new secret, so that the endpoint can change over. At most five old secrets are valid at a time.',
      params,
      answers: {
        200: {
          description: 'The webhook with its new secret.',
          data: webhookDetail,
          example: EXAMPLES.whole,
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

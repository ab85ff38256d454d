import * as z from 'zod';
import { isRefusal } from '../../core/refusal.ts';
import type { Webhooks } from '../../webhooks/service.ts';
import { mapResult, type Route, routesOf } from '../route.ts';
import { definedFields } from './fields.ts';
import { pageOf, pageOfAll, pagesById, pagingWide } from './paging.ts';
import { WEBHOOK_EXAMPLES, webhook, webhookDetail, webhookFields } from './webhook-schemas.ts';

const route = routesOf({ tag: 'Webhooks', scope: 'setup', permissions: ['read', 'develop'] });
const one = { data: webhookDetail, example: WEBHOOK_EXAMPLES.detail };

/** `/web-setup/webhooks`: endpoints that receive the events of an account. */
export function webhookRoutes({ webhooks }: { webhooks: Webhooks }): Route[] {
  const update = (method: 'PUT' | 'PATCH', operationId: string) =>
    route(`${method} /web-setup/webhooks/{webhookId}`, {
      operationId,
      summary: 'Update a webhook',
      description:
        'Replaces the fields that are given. A webhook that is enabled again receives the events that were pending when it was disabled; events of the time in between can be replayed.',
      body: z.object(webhookFields).partial().meta({ id: 'WebhookPatch' }),
      example: { events: ['*'] },
      stores: ({ isActive }) => isActive !== false,
      response: { description: 'The updated webhook.', ...one },
      refusals: ['WEBHOOK_NOT_FOUND'],
      handle: ({ caller, params, body }) =>
        webhooks.update(caller.accountId, params.webhookId, definedFields(body)),
    });
  return [
    route('GET /web-setup/webhooks', {
      operationId: 'listWebhooks',
      summary: 'List webhooks',
      query: z.object({
        includeInactive: z.stringbool().default(false).describe('Includes disabled webhooks.'),
        ...pagingWide,
      }),
      hidesUrls: 'path',
      page: pagesById('webhooks'),
      response: pageOf('webhooks', webhook, WEBHOOK_EXAMPLES.webhook, {
        description: 'A page of webhooks, oldest first.',
      }),
      handle: ({ caller, query, after }) => {
        const all = webhooks.list(caller.accountId, query);
        const page = pageOfAll(all, query.limit, after, ({ webhookId }) => webhookId);
        return mapResult(page, ({ rows, end }) => ({ webhooks: rows, ...end }));
      },
    }),
    route('POST /web-setup/webhooks', {
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
      response: { status: 201, description: 'The created webhook.', ...one },
      refusals: ['LIMIT_REACHED'],
      handle: ({ caller, body }) => webhooks.create(caller.accountId, body),
    }),
    route('GET /web-setup/webhooks/{webhookId}', {
      operationId: 'getWebhook',
      summary: 'Get a webhook with its secret',
      // With its secret.
      permission: 'develop',
      response: { description: 'The webhook.', ...one },
      refusals: ['WEBHOOK_NOT_FOUND'],
      handle: ({ caller, params }) => webhooks.get(caller.accountId, params.webhookId),
    }),
    update('PUT', 'updateWebhook'),
    update('PATCH', 'patchWebhook'),
    route('DELETE /web-setup/webhooks/{webhookId}', {
      operationId: 'deleteWebhook',
      summary: 'Delete a webhook',
      description: 'Takes effect immediately. Pending deliveries are dropped.',
      response: {
        description: 'The webhook was deleted.',
        data: z.object({ message: z.string(), webhookId: z.string() }),
        example: { message: 'The webhook has been deleted.', webhookId: WEBHOOK_EXAMPLES.id },
      },
      refusals: ['WEBHOOK_NOT_FOUND'],
      handle: async ({ caller, params: { webhookId } }) => {
        const removed = await webhooks.remove(caller.accountId, webhookId);
        return isRefusal(removed) ? removed : { message: 'The webhook has been deleted.', webhookId };
      },
    }),
    route('POST /web-setup/webhooks/{webhookId}/rotate-secret', {
      operationId: 'rotateWebhookSecret',
      summary: 'Rotate the secret of a webhook',
      description:
        'The old secret remains valid for 24 hours: calls have a signature of each secret, so that the endpoint can switch at any time in between. At most five old secrets are valid at a time.',
      response: { description: 'The webhook with its new secret.', ...one },
      refusals: ['WEBHOOK_NOT_FOUND'],
      handle: ({ caller, params }) => webhooks.rotateSecret(caller.accountId, params.webhookId),
    }),
  ];
}

import { z } from 'zod';
import { isRefusal } from '../../core/refusal.ts';
import type { Webhooks } from '../../webhooks/service.ts';
import { type Route, type RouteDescription, route } from '../route.ts';
import { pageEndForm, pageOfAll, pagingWide } from './paging.ts';
import { withoutUndefined } from './text-form.ts';
import { EXAMPLES, webhook, webhookFields, wholeWebhook } from './webhook-forms.ts';

/** `/web-setup/webhooks`: endpoints that are told of an account's events. */
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
      summary: 'The active webhooks',
      query: z.object({
        includeInactive: z.stringbool().default(false).describe('Those that are off as well.'),
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
      summary: 'Makes a webhook',
      description:
        'From now on every event of these kinds is POSTed to the URL, signed as Standard Webhooks has it (headers `webhook-id`, `webhook-timestamp`, `webhook-signature`). 2xx within 15 s is success; else it is tried again after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h and 24 h. An event may come more than once, with the same `webhook-id`, and in any order. Redirects are not followed. An endpoint that answers 410 is turned off, and so is one that does nothing but fail for 5 days.',
      body: z.object(webhookFields),
      example: { url: EXAMPLES.webhook.url, events: EXAMPLES.webhook.events, name: EXAMPLES.webhook.name },
      answers: { 201: { description: 'Made.', data: wholeWebhook, example: EXAMPLES.whole } },
      refusals: ['LIMIT_REACHED'],
      handle: async ({ caller, body }) => {
        const made = await webhooks.create(caller.accountId, body);
        return isRefusal(made) ? made : { status: 201, data: made };
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
      summary: 'Changes a webhook',
      description:
        'Fields that are given replace what was there, others stay. Turned on again, a webhook is told what waited when it was turned off; what happened while it was off can be replayed.',
      params,
      body: z.object(webhookFields).partial(),
      example: { events: ['*'] },
      answers: {
        200: { description: 'The webhook as it is now.', data: wholeWebhook, example: EXAMPLES.whole },
      },
      refusals: ['WEBHOOK_NOT_FOUND'],
      handle: async ({ caller, params, body }) => {
        const changed = await webhooks.update(caller.accountId, params.webhookId, withoutUndefined(body));
        return isRefusal(changed) ? changed : { status: 200, data: changed };
      },
    });
  return [
    route({
      ...COMMON,
      method: 'GET',
      path: '/web-setup/webhooks/{webhookId}',
      operationId: 'getWebhook',
      summary: 'One webhook, with its secret',
      params,
      answers: { 200: { description: 'The webhook.', data: wholeWebhook, example: EXAMPLES.whole } },
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
      summary: 'Deletes a webhook',
      description: 'At once: nothing more is sent, what was still to be told is dropped.',
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
      summary: 'Gives a webhook a new secret',
      description:
        'For 24 hours the old secret signs along: calls carry a signature of each, so the endpoint can change over when it likes. At most five old ones do so at a time.',
      params,
      answers: { 200: { description: 'With the new secret.', data: wholeWebhook, example: EXAMPLES.whole } },
      refusals: ['WEBHOOK_NOT_FOUND'],
      handle: async ({ caller, params }) => {
        const rotated = await webhooks.rotateSecret(caller.accountId, params.webhookId);
        return isRefusal(rotated) ? rotated : { status: 200, data: rotated };
      },
    }),
  ];
}

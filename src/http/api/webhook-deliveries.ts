import * as z from 'zod';
import { iso } from '../../core/clock.ts';
import { invalid, isRefusal } from '../../core/refusal.ts';
import { DELIVERY_STATUSES } from '../../webhooks/resource.ts';
import type { Webhooks } from '../../webhooks/service.ts';
import { type Route, type RouteDescription, route } from '../route.ts';
import { eventKind } from './event-schema.ts';
import { requestTime } from './fields.ts';
import { pageEndFields, pageKey, paging, readPageKey, SHORT_PAGES } from './paging.ts';
import { delivery, deliveryDetail, testResult, WEBHOOK_EXAMPLES } from './webhook-schemas.ts';

/** `/web-setup/webhooks/{webhookId}/test`, `/deliveries` and `/replay`: test calls, deliveries, and their repetition. */
export function webhookDeliveryRoutes({ webhooks }: { webhooks: Webhooks }): Route[] {
  return [
    testRoute(webhooks),
    listRoute(webhooks),
    getRoute(webhooks),
    retryRoute(webhooks),
    replayRoute(webhooks),
  ];
}

const COMMON = { tag: 'Webhooks', scope: 'setup' } satisfies Partial<RouteDescription>;
const params = z.object({ webhookId: z.string() });

function testRoute(webhooks: Webhooks): Route {
  return route({
    ...COMMON,
    method: 'POST',
    path: '/web-setup/webhooks/{webhookId}/test',
    operationId: 'testWebhook',
    summary: 'Send a sample event to a webhook',
    description:
      'The request is signed like that of a real event; `livemode` is false. The response waits for the endpoint and reports the result, including failures. Works for disabled webhooks. The call is not stored and does not count as a failure.',
    params,
    body: z
      .object({
        event: eventKind.optional().describe('Default: the first kind to which the webhook subscribes.'),
      })
      .meta({ id: 'WebhookTestInput' })
      .optional(),
    example: { event: 'email_bounced' },
    responses: {
      200: { description: 'The result of the call.', data: testResult, example: WEBHOOK_EXAMPLES.test },
    },
    refusals: ['WEBHOOK_NOT_FOUND'],
    handle: async ({ caller, params, body, signal }) => {
      const result = await webhooks.test(caller.accountId, params.webhookId, body?.event, signal);
      return isRefusal(result) ? result : { status: 200, data: result };
    },
  });
}

function listRoute(webhooks: Webhooks): Route {
  return route({
    ...COMMON,
    method: 'GET',
    path: '/web-setup/webhooks/{webhookId}/deliveries',
    operationId: 'listWebhookDeliveries',
    summary: 'List the deliveries of a webhook, newest event first',
    description: SHORT_PAGES,
    params,
    query: z.object({ status: z.enum(DELIVERY_STATUSES).optional(), ...paging }),
    responses: {
      200: {
        description: 'A page of deliveries.',
        data: z.object({ deliveries: z.array(delivery), ...pageEndFields }),
        example: { deliveries: [WEBHOOK_EXAMPLES.delivery], count: 1 },
      },
    },
    refusals: ['WEBHOOK_NOT_FOUND'],
    narrowBy: ['status', 'limit'],
    handle: async ({ caller, params, query }) => {
      const beforeSeq = readPageKey('webhook-deliveries', query.lastKey);
      if (isRefusal(beforeSeq)) return beforeSeq;
      const { status, limit } = query;
      const page = await webhooks.deliveries(caller.accountId, params.webhookId, {
        status,
        beforeSeq,
        limit,
      });
      if (isRefusal(page)) return page;
      const { deliveries, nextSeq } = page;
      return {
        status: 200,
        data: {
          deliveries,
          count: deliveries.length,
          ...(nextSeq === null ? {} : { nextKey: pageKey('webhook-deliveries', nextSeq) }),
        },
      };
    },
  });
}

function getRoute(webhooks: Webhooks): Route {
  return route({
    ...COMMON,
    method: 'GET',
    path: '/web-setup/webhooks/{webhookId}/deliveries/{deliveryId}',
    operationId: 'getWebhookDelivery',
    summary: 'Get a webhook delivery with the body of its calls',
    params: params.extend({ deliveryId: z.string() }),
    responses: {
      200: {
        description: 'The delivery.',
        data: deliveryDetail,
        example: { ...WEBHOOK_EXAMPLES.delivery, payload: WEBHOOK_EXAMPLES.test.payload },
      },
    },
    refusals: ['WEBHOOK_NOT_FOUND', 'NOT_FOUND'],
    handle: ({ caller, params }) => {
      const found = webhooks.delivery(caller.accountId, params.webhookId, params.deliveryId);
      return isRefusal(found) ? found : { status: 200, data: found };
    },
  });
}

function retryRoute(webhooks: Webhooks): Route {
  return route({
    ...COMMON,
    method: 'POST',
    path: '/web-setup/webhooks/{webhookId}/deliveries/{deliveryId}/retry',
    operationId: 'retryWebhookDelivery',
    stores: () => false,
    summary: 'Retry a webhook delivery now',
    description:
      'Works for deliveries of any status. A delivery that succeeded or failed starts its schedule again.',
    params: params.extend({ deliveryId: z.string() }),
    responses: {
      200: { description: 'The updated delivery.', data: delivery, example: WEBHOOK_EXAMPLES.delivery },
    },
    refusals: ['WEBHOOK_NOT_FOUND', 'NOT_FOUND', 'INVALID_STATE'],
    handle: async ({ caller, params }) => {
      const delivery = await webhooks.retry(caller.accountId, params.webhookId, params.deliveryId);
      return isRefusal(delivery) ? delivery : { status: 200, data: delivery };
    },
  });
}

function replayRoute(webhooks: Webhooks): Route {
  return route({
    ...COMMON,
    method: 'POST',
    path: '/web-setup/webhooks/{webhookId}/replay',
    operationId: 'replayWebhook',
    summary: 'Replay the events of a period to a webhook',
    description:
      'Replays events of the kinds to which the webhook subscribes now, at most 100,000 per request. If more remain, the response has `nextFrom`: send it as `from` of the next request.',
    params,
    body: z
      .object({
        from: requestTime.describe('Start, inclusive.'),
        to: requestTime.describe('End, exclusive.'),
        which: z
          .enum(['undelivered', 'all'])
          .default('undelivered')
          .describe(
            '`undelivered`: events that were not delivered because calls failed, are pending, or were not made while the webhook was disabled. `all`: delivered events as well.',
          ),
      })
      .meta({ id: 'WebhookReplayInput' }),
    example: { from: '2026-02-01T00:00:00.000Z', to: '2026-02-02T00:00:00.000Z' },
    responses: {
      200: {
        description: 'The events are being sent.',
        data: z.object({
          message: z.string(),
          webhookId: z.string(),
          replayed: z.int().describe('Number of events.'),
          nextFrom: z.iso.datetime().optional(),
        }),
        example: { message: '12 events will be sent now.', webhookId: WEBHOOK_EXAMPLES.id, replayed: 12 },
      },
    },
    refusals: ['WEBHOOK_NOT_FOUND', 'INVALID_STATE'],
    handle: async ({ caller, params: { webhookId }, body }) => {
      const [from, to] = [Date.parse(body.from), Date.parse(body.to)];
      if (from >= to) return invalid('to', 'must be after `from`');
      const result = await webhooks.replay(caller.accountId, webhookId, { from, to, which: body.which });
      if (isRefusal(result)) return result;
      const { replayed, nextFrom } = result;
      return {
        status: 200,
        data: {
          message: `${replayed} event${replayed === 1 ? '' : 's'} will be sent now.`,
          webhookId,
          replayed,
          ...(nextFrom === null ? {} : { nextFrom: iso(nextFrom) }),
        },
      };
    },
  });
}

import { z } from 'zod';
import { iso } from '../../core/clock.ts';
import { invalid, isRefusal } from '../../core/refusal.ts';
import { EVENT_KINDS } from '../../events/event-types.ts';
import { DELIVERY_STATUSES } from '../../webhooks/resource.ts';
import type { Webhooks } from '../../webhooks/service.ts';
import { pageKey, readPageKey } from '../page-key.ts';
import { type Route, type RouteDescription, route } from '../route.ts';
import { pageEndForm, paging, SHORT_PAGES } from './paging.ts';
import { delivery, EXAMPLES, testResult } from './webhook-forms.ts';

/** Deliveries of a webhook: list, retry, replay; test calls. */
export function webhookDeliveryRoutes({ webhooks }: { webhooks: Webhooks }): Route[] {
  return [test(webhooks), list(webhooks), retry(webhooks), replay(webhooks)];
}

const COMMON = { tag: 'Webhooks', scope: 'setup' } satisfies Partial<RouteDescription>;
const params = z.object({ webhookId: z.string() });

function test(webhooks: Webhooks): Route {
  return route({
    ...COMMON,
    method: 'POST',
    path: '/web-setup/webhooks/{webhookId}/test',
    operationId: 'testWebhook',
    summary: 'Send a sample event to a webhook',
    description:
      'The call is signed like others; `livemode` is false. The response contains the result, also when the call failed. Inactive webhooks can be tested. The call is not stored and counts in no statistics.',
    params,
    body: z
      .object({
        event: z
          .enum(EVENT_KINDS)
          .optional()
          .describe('The kind of the event. Default: the first that the webhook takes.'),
      })
      .optional(),
    example: { event: 'email_bounced' },
    answers: { 200: { description: 'The result.', data: testResult, example: EXAMPLES.test } },
    refusals: ['WEBHOOK_NOT_FOUND'],
    handle: async ({ caller, params, body, signal }) => {
      const result = await webhooks.test(caller.accountId, params.webhookId, body?.event, signal);
      return isRefusal(result) ? result : { status: 200, data: result };
    },
  });
}

function list(webhooks: Webhooks): Route {
  return route({
    ...COMMON,
    method: 'GET',
    path: '/web-setup/webhooks/{webhookId}/deliveries',
    operationId: 'listWebhookDeliveries',
    summary: 'List deliveries of a webhook, newest event first',
    description: SHORT_PAGES,
    params,
    query: z.object({ status: z.enum(DELIVERY_STATUSES).optional(), ...paging }),
    answers: {
      200: {
        description: 'A page of deliveries.',
        data: z.object({ deliveries: z.array(delivery), ...pageEndForm }),
        example: { deliveries: [EXAMPLES.delivery], count: 1 },
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

function retry(webhooks: Webhooks): Route {
  return route({
    ...COMMON,
    method: 'POST',
    path: '/web-setup/webhooks/{webhookId}/deliveries/{deliveryId}/retry',
    operationId: 'retryWebhookDelivery',
    summary: 'Retry a delivery',
    description: 'Whatever its status is. The schedule of a succeeded or failed delivery starts again.',
    params: params.extend({ deliveryId: z.string() }),
    answers: {
      200: { description: 'The updated delivery.', data: delivery, example: EXAMPLES.delivery },
    },
    refusals: ['WEBHOOK_NOT_FOUND', 'NOT_FOUND', 'INVALID_STATE'],
    handle: async ({ caller, params }) => {
      const again = await webhooks.retry(caller.accountId, params.webhookId, params.deliveryId);
      return isRefusal(again) ? again : { status: 200, data: again };
    },
  });
}

const moment = z.iso.datetime({
  offset: true,
  error: 'must be an ISO 8601 time such as 2026-01-31T12:00:00Z',
});

function replay(webhooks: Webhooks): Route {
  return route({
    ...COMMON,
    method: 'POST',
    path: '/web-setup/webhooks/{webhookId}/replay',
    operationId: 'replayWebhook',
    summary: 'Replay the events of a time range',
    description:
      'Replays events of the kinds that the webhook takes now, at most 100,000 in a request. `nextFrom` is present while more follow: pass it as `from` of the next request.',
    params,
    body: z.object({
      from: moment.describe('Inclusive.'),
      to: moment.describe('Exclusive.'),
      which: z
        .enum(['undelivered', 'all'])
        .default('undelivered')
        .describe(
          '`undelivered`: events that did not succeed, because calls failed, are pending, or were not made while the webhook was inactive. `all`: also those that succeeded.',
        ),
    }),
    example: { from: '2026-02-01T00:00:00.000Z', to: '2026-02-02T00:00:00.000Z' },
    answers: {
      200: {
        description: 'The deliveries are ready.',
        data: z.object({
          message: z.string(),
          webhookId: z.string(),
          replayed: z.int().describe('Number of events.'),
          nextFrom: z.iso.datetime().optional(),
        }),
        example: { message: '12 events are being sent.', webhookId: EXAMPLES.id, replayed: 12 },
      },
    },
    refusals: ['WEBHOOK_NOT_FOUND', 'INVALID_STATE'],
    handle: async ({ caller, params: { webhookId }, body }) => {
      const [from, to] = [Date.parse(body.from), Date.parse(body.to)];
      if (from >= to) return invalid('to', 'must be after from');
      const result = await webhooks.replay(caller.accountId, webhookId, { from, to, which: body.which });
      if (isRefusal(result)) return result;
      const { replayed, nextFrom } = result;
      return {
        status: 200,
        data: {
          message: `${replayed} event${replayed === 1 ? ' is' : 's are'} being sent.`,
          webhookId,
          replayed,
          ...(nextFrom === null ? {} : { nextFrom: iso(nextFrom) }),
        },
      };
    },
  });
}

import { z } from 'zod';
import { iso } from '../../core/clock.ts';
import { invalid, isRefusal } from '../../core/refusal.ts';
import { EVENT_KINDS } from '../../events/event-types.ts';
import type { Webhooks } from '../../webhooks/service.ts';
import { DELIVERY_STATUSES } from '../../webhooks/shown.ts';
import { pageKey, readPageKey } from '../page-key.ts';
import { type Route, type RouteDescription, route } from '../route.ts';
import { pageEndForm, paging, SHORT_PAGES } from './paging.ts';
import { delivery, EXAMPLES, testResult } from './webhook-forms.ts';

/** What webhooks were told, telling it again, and trying one out. */
export function webhookDeliveryRoutes({ webhooks }: { webhooks: Webhooks }): Route[] {
  return [tryOut(webhooks), list(webhooks), retry(webhooks), replay(webhooks)];
}

const COMMON = { tag: 'Webhooks', scope: 'setup' } satisfies Partial<RouteDescription>;
const params = z.object({ webhookId: z.string() });

function tryOut(webhooks: Webhooks): Route {
  return route({
    ...COMMON,
    method: 'POST',
    path: '/web-setup/webhooks/{webhookId}/test',
    operationId: 'testWebhook',
    summary: 'Calls a webhook now, with a sample event',
    description:
      'Signed as a real one, `livemode` is false. The answer waits for the endpoint and says what came of it, also when that is a failure. Works while the webhook is off; is kept nowhere and counts for nothing.',
    params,
    body: z
      .object({
        event: z
          .enum(EVENT_KINDS)
          .optional()
          .describe('The kind of event; default: the first that the webhook takes.'),
      })
      .optional(),
    example: { event: 'email_bounced' },
    answers: { 200: { description: 'What came of it.', data: testResult, example: EXAMPLES.test } },
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
    summary: 'What a webhook was told, newest event first',
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
    summary: 'Makes one delivery again, now',
    description: 'Whatever became of it before; one that had come to its end begins its schedule anew.',
    params: params.extend({ deliveryId: z.string() }),
    answers: {
      200: { description: 'The delivery as it is now.', data: delivery, example: EXAMPLES.delivery },
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
    summary: 'Tells a webhook the events of a time again, now',
    description:
      'Of the kinds that it takes now. A request replays 100,000 events at most; `nextFrom` is given while more follow: ask again with it as `from`.',
    params,
    body: z.object({
      from: moment.describe('At or after.'),
      to: moment.describe('Before.'),
      which: z
        .enum(['undelivered', 'all'])
        .default('undelivered')
        .describe(
          '`undelivered`: what it was not told, because calls failed, still wait, or were never made while it was off. `all`: also what it was told.',
        ),
    }),
    example: { from: '2026-02-01T00:00:00.000Z', to: '2026-02-02T00:00:00.000Z' },
    answers: {
      200: {
        description: 'They are on their way.',
        data: z.object({
          message: z.string(),
          webhookId: z.string(),
          replayed: z.int().describe('Events.'),
          nextFrom: z.iso.datetime().optional(),
        }),
        example: { message: '12 events will be told now.', webhookId: EXAMPLES.id, replayed: 12 },
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
          message: `${replayed} event${replayed === 1 ? '' : 's'} will be told now.`,
          webhookId,
          replayed,
          ...(nextFrom === null ? {} : { nextFrom: iso(nextFrom) }),
        },
      };
    },
  });
}

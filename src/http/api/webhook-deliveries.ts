import * as z from 'zod';
import { iso } from '../../core/clock.ts';
import { invalid, isRefusal } from '../../core/refusal.ts';
import { DELIVERY_STATUSES } from '../../webhooks/resource.ts';
import type { Webhooks } from '../../webhooks/service.ts';
import { mapResult, type Route, routesOf, unchecked } from '../route.ts';
import { eventKind } from './event-schema.ts';
import { requestTime } from './fields.ts';
import { endOf, pageOf, pagesBySeq, paging, SHORT_PAGES } from './paging.ts';
import { delivery, deliveryDetail, testResult, WEBHOOK_EXAMPLES } from './webhook-schemas.ts';

const route = routesOf({ tag: 'Webhooks', scope: 'setup', permissions: ['read', 'develop'] });

/** `/web-setup/webhooks/{webhookId}/test`, `/deliveries` and `/replay`: test calls, deliveries, and their repetition. */
export function webhookDeliveryRoutes({ webhooks }: { webhooks: Webhooks }): Route[] {
  return [
    route('POST /web-setup/webhooks/{webhookId}/test', {
      operationId: 'testWebhook',
      summary: 'Send a sample event to a webhook',
      description:
        'The request is signed like that of a real event; `livemode` is false. The response waits for the endpoint and reports the result, including failures. Works for disabled webhooks. The call is not stored and does not count as a failure.',
      body: z
        .object({
          event: eventKind.optional().describe('Default: the first kind to which the webhook subscribes.'),
        })
        .meta({ id: 'WebhookTestInput' })
        .optional(),
      example: { event: 'email_bounced' },
      response: {
        description: 'The result of the call.',
        data: unchecked(testResult),
        example: WEBHOOK_EXAMPLES.test,
      },
      refusals: ['WEBHOOK_NOT_FOUND'],
      handle: ({ caller, params, body, signal }) =>
        webhooks.test(caller.accountId, params.webhookId, body?.event, signal),
    }),
    route('GET /web-setup/webhooks/{webhookId}/deliveries', {
      operationId: 'listWebhookDeliveries',
      summary: 'List the deliveries of a webhook, newest event first',
      description: SHORT_PAGES,
      query: z.object({ status: z.enum(DELIVERY_STATUSES).optional(), ...paging }),
      page: pagesBySeq('webhook-deliveries'),
      response: pageOf('deliveries', delivery, WEBHOOK_EXAMPLES.delivery),
      refusals: ['WEBHOOK_NOT_FOUND'],
      narrowBy: ['status', 'limit'],
      handle: async ({ caller, params, query: { status, limit }, after }) => {
        const filter = { status, beforeSeq: after, limit };
        const page = await webhooks.deliveries(caller.accountId, params.webhookId, filter);
        return mapResult(page, ({ deliveries, nextSeq }) => ({ deliveries, ...endOf(deliveries, nextSeq) }));
      },
    }),
    route('GET /web-setup/webhooks/{webhookId}/deliveries/{deliveryId}', {
      operationId: 'getWebhookDelivery',
      summary: 'Get a webhook delivery with the body of its calls',
      hidesUrls: 'query',
      response: {
        description: 'The delivery.',
        data: unchecked(deliveryDetail),
        example: { ...WEBHOOK_EXAMPLES.delivery, payload: WEBHOOK_EXAMPLES.test.payload },
      },
      refusals: ['WEBHOOK_NOT_FOUND', 'NOT_FOUND'],
      handle: ({ caller, params }) =>
        webhooks.delivery(caller.accountId, params.webhookId, params.deliveryId),
    }),
    route('POST /web-setup/webhooks/{webhookId}/deliveries/{deliveryId}/retry', {
      operationId: 'retryWebhookDelivery',
      stores: () => false,
      summary: 'Retry a webhook delivery now',
      description:
        'Works for deliveries of any status. A delivery that succeeded or failed starts its schedule again.',
      response: { description: 'The updated delivery.', data: delivery, example: WEBHOOK_EXAMPLES.delivery },
      refusals: ['WEBHOOK_NOT_FOUND', 'NOT_FOUND', 'INVALID_STATE'],
      handle: ({ caller, params }) => webhooks.retry(caller.accountId, params.webhookId, params.deliveryId),
    }),
    route('POST /web-setup/webhooks/{webhookId}/replay', {
      operationId: 'replayWebhook',
      summary: 'Replay the events of a period to a webhook',
      description:
        'Replays events of the kinds to which the webhook subscribes now, at most 100,000 per request. If more remain, the response has `nextFrom`: send it as `from` of the next request.',
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
      response: {
        description: 'The events are being sent.',
        data: z.object({
          message: z.string(),
          webhookId: z.string(),
          replayed: z.int().describe('Number of events.'),
          nextFrom: z.iso.datetime().optional(),
        }),
        example: { message: '12 events will be sent now.', webhookId: WEBHOOK_EXAMPLES.id, replayed: 12 },
      },
      refusals: ['WEBHOOK_NOT_FOUND', 'INVALID_STATE'],
      handle: async ({ caller, params: { webhookId }, body }) => {
        const [from, to] = [Date.parse(body.from), Date.parse(body.to)];
        if (from >= to) return invalid('to', 'must be after `from`');
        const result = await webhooks.replay(caller.accountId, webhookId, { from, to, which: body.which });
        if (isRefusal(result)) return result;
        const { replayed, nextFrom } = result;
        return {
          message: `${replayed} event${replayed === 1 ? '' : 's'} will be sent now.`,
          webhookId,
          replayed,
          ...(nextFrom === null ? {} : { nextFrom: iso(nextFrom) }),
        };
      },
    }),
  ];
}

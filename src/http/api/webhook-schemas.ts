import * as z from 'zod';
import { DAY } from '../../core/clock.ts';
import { EVENT_KINDS } from '../../events/event-types.ts';
import { FILTERED_STREAMS } from '../../events/webhook-filter.ts';
import { WEBHOOK_FORMATS } from '../../webhooks/formats.ts';
import { DELIVERY_STATUSES } from '../../webhooks/resource.ts';
import { EVENT_EXAMPLE } from './event-schema.ts';
import { atMost, line, lines } from './fields.ts';

/* Requests and responses of the webhook operations, with an example of each. */

/** Every kind once, and `*`. */
const MAX_EVENT_FILTERS = EVENT_KINDS.length + 1;

/** Values in a list of a filter. */
const MAX_FILTER_VALUES = 100;

const eventFilter = z.enum(['*', ...EVENT_KINDS]).meta({ id: 'WebhookEventFilter' });

export const webhookFields = {
  url: z.string().max(2048).meta({
    id: 'WebhookUrl',
    description:
      'The receiving endpoint: http or https, without user name and password. Its name is looked up in DNS; only `localhost` refers to the machine of this service.',
  }),
  format: z
    .enum(WEBHOOK_FORMATS)
    .meta({
      id: 'WebhookFormat',
      description:
        'Whose webhooks the calls have the bodies of. Default: `postrider`. Kinds of events for which the format has no name are not sent, and are not in `events` of the response.',
    })
    .optional(),
  events: z
    .union([eventFilter, atMost(z.array(eventFilter).min(1), MAX_EVENT_FILTERS)])
    .meta({ id: 'WebhookEvents', description: 'Kinds of events that are sent to the webhook; `*`: all.' }),
  filter: z
    .object({
      domains: atMost(z.array(z.string().max(255)), MAX_FILTER_VALUES)
        .optional()
        .describe('Domains of the account: of the From address, or that the event is about.'),
      streams: z.array(z.enum(FILTERED_STREAMS)).max(FILTERED_STREAMS.length).optional(),
      tags: atMost(z.array(z.string().max(50)), MAX_FILTER_VALUES)
        .optional()
        .describe('Tags of messages.'),
    })
    .nullable()
    .meta({
      id: 'WebhookFilter',
      description:
        'Which events of these kinds are sent: those with one of the values of each list that is given. `null` or without lists: all. Events that have no domain, stream or tag are not sent if the filter has such a list.',
    })
    .optional(),
  headers: atMost(z.record(z.string().max(100), z.string().max(1000)), 10)
    .nullable()
    .meta({
      id: 'WebhookHeaders',
      description:
        'Headers that are added to every call, such as `Authorization`: at most 10, values of up to 1,000 printable ASCII characters. They replace those that were set before; `null` or `{}` removes all. Values are stored encrypted and never returned. Not allowed: `Host`, `User-Agent`, `Content-*`, `Webhook-*`, and headers of the connection.',
    })
    .optional(),
  name: line(100)
    .meta({
      id: 'WebhookName',
      description: 'For display. Default: the description, else the host of the URL.',
    })
    .optional(),
  description: lines(500).nullable().optional(),
  isActive: z
    .boolean()
    .meta({
      id: 'WebhookIsActive',
      description: 'Default: true. Events are not stored for a disabled webhook (`false`).',
    })
    .optional(),
};

const webhookShape = {
  webhookId: z.string(),
  name: z.string(),
  url: z.string(),
  events: z.array(z.string()),
  format: z.enum(WEBHOOK_FORMATS).optional().describe('Absent: `postrider`, our own format.'),
  filter: webhookFields.filter,
  headerNames: z.array(z.string()).optional().describe('Names of the headers that are added to its calls.'),
  isActive: z.boolean(),
  createdAt: z.int().describe('Epoch milliseconds.'),
  failingSince: z.iso.datetime().optional().describe('Time since which every call has failed.'),
};

export const webhook = z.object(webhookShape).meta({ id: 'Webhook' });

export const webhookDetail = z
  .object({
    ...webhookShape,
    description: z.string().optional(),
    secret: z
      .string()
      .describe('`whsec_` and the key in base64, as the Standard Webhooks libraries expect it.'),
    verificationKey: z
      .string()
      .optional()
      .describe('The public key that verifies calls in the format `sendgrid`: DER in base64.'),
    offReason: z
      .enum(['gone', 'failing'])
      .optional()
      .describe(
        'Why the service disabled it: the endpoint responded with 410, or every call failed for 5 days.',
      ),
    updatedAt: z.int().describe('Epoch milliseconds.'),
  })
  .meta({ id: 'WebhookDetail' });

export const delivery = z
  .object({
    deliveryId: z.string(),
    eventId: z
      .string()
      .optional()
      .describe('The `webhook-id` of its calls; absent after the event is purged.'),
    event: z.string().optional(),
    status: z.enum(DELIVERY_STATUSES),
    attempts: z.int(),
    responseCode: z.int().optional().describe('Status code of the last attempt.'),
    responseBody: z.string().optional().describe('The first 1 KiB of the response body.'),
    error: z.string().optional().describe('Why the last attempt failed.'),
    lastAttemptAt: z.iso.datetime().optional(),
    nextAttemptAt: z.iso
      .datetime()
      .optional()
      .describe('Time of the next attempt of a pending delivery; absent once it is due.'),
    nextProbeAt: z.iso
      .datetime()
      .optional()
      .describe(
        'The delivery waits for the endpoint, which responded with 429, 502 or 504 or not in time: time of the next call to it.',
      ),
    createdAt: z.iso.datetime(),
  })
  .meta({ id: 'WebhookDelivery' });

const payload = z
  .object({
    id: z.string(),
    type: z.string(),
    created: z.iso.datetime(),
    timestamp: z.iso.datetime(),
    livemode: z.boolean(),
    data: z.object({ object: z.looseObject({ eventId: z.string(), event: z.string() }) }),
  })
  .meta({ id: 'WebhookPayload', description: 'The body of the calls in our own format.' });

const providerPayload = z
  .union([z.looseObject({}), z.array(z.looseObject({}))])
  .meta({ id: 'WebhookProviderPayload', description: 'The body in the format of a provider.' });

export const deliveryDetail = z
  .intersection(
    delivery,
    z.object({
      payload: z.union([payload, providerPayload]).nullable().describe('`null` after the event is purged.'),
    }),
  )
  .meta({ id: 'WebhookDeliveryDetail' });

export const testResult = z
  .object({
    webhookId: z.string(),
    delivered: z.boolean().describe('Whether the endpoint responded with 2xx in time.'),
    responseCode: z.int().optional(),
    responseBody: z.string().optional().describe('The first 1 KiB of the response body.'),
    error: z.string().optional(),
    durationMs: z.int(),
    payload: z.union([payload, providerPayload]),
  })
  .meta({ id: 'WebhookTestResult' });

const ID = 'webhook_1769860800000_4k2m9x7q1zab';
const CREATED = Date.parse('2026-01-31T12:00:00.000Z');
const WEBHOOK: z.output<typeof webhook> = {
  webhookId: ID,
  name: 'Shop backend',
  url: 'https://shop.example.com/hooks/mail',
  events: ['email_delivered', 'email_bounced', 'email_complained'],
  isActive: true,
  createdAt: CREATED,
};

export const WEBHOOK_EXAMPLES = {
  id: ID,
  webhook: WEBHOOK,
  detail: {
    ...WEBHOOK,
    // Bytes 0 to 31, not a real key.
    secret: `whsec_${Buffer.from(Array.from({ length: 32 }, (_, index) => index)).toString('base64')}`,
    updatedAt: CREATED + DAY,
  } satisfies z.output<typeof webhookDetail>,
  delivery: {
    deliveryId: 'whd_1769947200000_2b4n6m8k1j3h',
    eventId: EVENT_EXAMPLE.eventId,
    event: EVENT_EXAMPLE.event,
    status: 'pending',
    attempts: 2,
    responseCode: 503,
    responseBody: 'Service Unavailable',
    error: 'the endpoint responded with 503',
    lastAttemptAt: '2026-02-01T12:00:06.000Z',
    nextAttemptAt: '2026-02-01T12:05:03.000Z',
    createdAt: EVENT_EXAMPLE.timestamp,
  } satisfies z.output<typeof delivery>,
  test: {
    webhookId: ID,
    delivered: true,
    responseCode: 200,
    responseBody: 'ok',
    durationMs: 82,
    payload: {
      id: EVENT_EXAMPLE.eventId,
      type: EVENT_EXAMPLE.event,
      created: EVENT_EXAMPLE.timestamp,
      timestamp: EVENT_EXAMPLE.timestamp,
      livemode: false,
      data: { object: { ...EVENT_EXAMPLE, to: [EVENT_EXAMPLE.recipient] } },
    },
  } satisfies z.output<typeof testResult>,
};

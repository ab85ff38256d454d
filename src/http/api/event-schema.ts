import * as z from 'zod';
import {
  ACCOUNT_EVENT_KINDS,
  type AccountEventKind,
  DOMAIN_EVENT_KINDS,
  DOMAIN_EVENT_SCHEMA,
  EVENT_KINDS,
  EVENT_TYPES,
  MESSAGE_EVENT_KINDS,
  type MessageEventKind,
} from '../../events/event-types.ts';
import type { FeedEvent } from '../../events/feed.ts';
import { labelFields } from './sending/send-schemas.ts';

const identity = z
  .object({
    eventId: z.string(),
    timestamp: z.iso.datetime(),
    accountId: z.string(),
    livemode: z.boolean().describe('`false`: the event is about mail of a test key or to the simulator.'),
    domainId: z.string().optional(),
  })
  .meta({ id: 'EventIdentity' });

/** Fields from the message; where an event has none, as that of a refused send, the ids are null and other fields may be absent. */
const messageFields = identity
  .extend({
    emailId: z.string().nullable().describe('The same as `messageId`.'),
    messageId: z
      .string()
      .nullable()
      .describe('`null`: there is no message, as for an opt-out through the API or a refused send.'),
    jobId: z.string().optional(),
    campaignId: z.string().optional(),
    subscriptionGroupId: z.string().optional(),
    useCase: z.enum(['tx', 'mk']).optional(),
    from: z.string().optional(),
    recipient: z.string().optional(),
    contactIdentifier: z.string().optional(),
    subject: z.string().optional(),
    ...labelFields,
  })
  .meta({ id: 'EventMessage' });

export const eventKind = z.enum(EVENT_KINDS).meta({ id: 'EventType' });

/** A variant for each kind of event, with the fields of that kind only. */
function variantsOf(kinds: readonly (MessageEventKind | AccountEventKind)[]) {
  const [first, ...others] = kinds.map((kind) =>
    z.object({ event: z.literal(kind), ...EVENT_TYPES[kind].fields.shape }),
  );
  if (first === undefined) throw new Error('there are no event types');
  return z.discriminatedUnion('event', [first, ...others]);
}

/** The schema of `presentEvent`. */
export const eventSchema = z
  .union([
    z.intersection(messageFields, variantsOf(MESSAGE_EVENT_KINDS)),
    z.intersection(identity, variantsOf(ACCOUNT_EVENT_KINDS)),
    z.intersection(identity, z.object({ event: z.enum(DOMAIN_EVENT_KINDS), ...DOMAIN_EVENT_SCHEMA.shape })),
    z.intersection(
      identity,
      z.object({
        event: z.literal('source_address_blocked'),
        ...EVENT_TYPES.source_address_blocked.fields.shape,
      }),
    ),
  ])
  .meta({ id: 'Event' });

/** A list in Markdown. */
export const EVENT_KINDS_TEXT = EVENT_KINDS.map(
  (kind) => `- \`${kind}\`: ${EVENT_TYPES[kind].description}.`,
).join('\n');

const EXAMPLE_MESSAGE_ID = 'msg_1769860800000_2q8w4e6r1t5y';

/** An example for the documentation. */
export const EVENT_EXAMPLE = {
  eventId: 'evt_1769860801250_7u3i9o5p1a2s',
  event: 'email_delivered',
  timestamp: '2026-01-31T12:00:01.250Z',
  accountId: 'acct_7f3k2m9x0q1z',
  livemode: true,
  emailId: EXAMPLE_MESSAGE_ID,
  messageId: EXAMPLE_MESSAGE_ID,
  useCase: 'tx',
  from: 'orders@example.com',
  recipient: 'ada@example.net',
  contactIdentifier: 'email_ae2c0afa556b74f2d501305b54c34910',
  subject: 'Your order 10042',
  domainId: 'domain_1769860800000_8m2k4x7q1zab',
  ...EVENT_TYPES.email_delivered.example,
} satisfies FeedEvent;

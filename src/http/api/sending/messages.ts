import * as z from 'zod';
import { iso } from '../../../core/clock.ts';
import { invalid, isRefusal, refuse } from '../../../core/refusal.ts';
import { FAILURE_REASONS, RECIPIENT_REFUSALS } from '../../../events/event-types.ts';
import { presentEvent } from '../../../events/feed.ts';
import {
  messageHistory,
  messagePage,
  presentMessage,
  presentTimeline,
} from '../../../events/message-view.ts';
import { domainOf, parseMailbox } from '../../../mail/address.ts';
import { BOUNCE_CLASSES } from '../../../mail/classify/rules.ts';
import { isEmailIdentifier, recipientIdentifier } from '../../../mail/identifier.ts';
import type { QueuedMail } from '../../../sending/queued-mail.ts';
import type { Context } from '../../../store/context.ts';
import { type ListedMessage, SHOWN_STATUSES, type ShownStatus } from '../../../store/messages/messages.ts';
import { HOLD_REASONS } from '../../../store/messages/queue.ts';
import { mapResult, type Route, routesOf, unchecked } from '../../route.ts';
import { EVENT_EXAMPLE, EVENT_KINDS_TEXT, eventKind, eventSchema } from '../event-schema.ts';
import { definedFields, requestTime } from '../fields.ts';
import { endOf, pageEndFields, pagesBySeq, paging, SHORT_PAGES } from '../paging.ts';
import {
  attemptedStatus,
  labelFields,
  scheduledTime,
  messageStatus as status,
  tagFilter,
} from './send-schemas.ts';

const route = routesOf({ tag: 'Messages and events', scope: 'setup', permissions: ['read', 'messages'] });

/* `/web-setup/messages` and `/web-setup/events`: messages, their history, actions on them, and the event feed. */

const common = {
  domainId: z.string().max(100).optional(),
  campaignId: z.string().max(100).optional(),
  jobId: z.string().max(100).optional(),
  tag: tagFilter.optional(),
  from: requestTime.optional().describe('Start, inclusive.'),
  to: requestTime.optional().describe('End, exclusive.'),
};

const holdReason = z.enum(HOLD_REASONS).meta({ id: 'HoldReason', description: 'Why the message is held.' });

const EXAMPLE_KEY = 'ZXZlbnRzOjgyMTE';

/** A part of a text that is searched. One character would match nearly every message. */
const part = z.string().trim().min(2).max(200).optional();

/** The filters of a list of messages, but for the status. */
export const messageFilters = {
  ...common,
  recipient: z
    .string()
    .trim()
    .min(2)
    .max(320)
    .optional()
    .describe(
      'A complete address or its identifier `email_<md5>`: messages to exactly this address, found by an index. Anything else, such as `smith`, `@example.com` or `jane.d`, is part of the address; ASCII case is ignored.',
    ),
  sender: part.describe('Part of the From address; ASCII case is ignored.'),
  subject: part.describe('Part of the subject; ASCII case is ignored.'),
};

/** The messages of an account that `messageFilters` select; a refusal if the period is not one. */
export function messageFilter(
  accountId: string,
  query: CommonQuery & { sender?: string | undefined; subject?: string | undefined },
) {
  const { recipient, sender, subject, ...others } = query;
  const filter = commonFilter(accountId, others);
  if (isRefusal(filter)) return filter;
  return {
    ...filter,
    ...(recipient === undefined ? {} : recipientFilter(recipient)),
    ...(sender === undefined ? {} : { sender: lowerAscii(sender) }),
    ...(subject === undefined ? {} : { subject: lowerAscii(subject) }),
  };
}

/**
 * The filter of a recipient: a complete address or its identifier finds its messages by an index, anything else is compared
 * with a limited number of addresses.
 */
function recipientFilter(recipient: string): { recipientHash: string } | { recipientPart: string } {
  const mailbox = parseMailbox(recipient);
  // While a person types, a domain without a dot is incomplete.
  const isWhole = typeof mailbox !== 'string' && domainOf(mailbox.address).includes('.');
  return isWhole || isEmailIdentifier(recipient)
    ? { recipientHash: recipientIdentifier(recipient) }
    : { recipientPart: lowerAscii(recipient) };
}

/** Lowers ASCII letters only, like SQLite's `lower`, with which the texts are compared. */
function lowerAscii(text: string): string {
  return text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());
}

const failureReason = z
  .enum([
    ...new Set([...BOUNCE_CLASSES, ...RECIPIENT_REFUSALS, 'CONSENT_WITHDRAWN' as const, ...FAILURE_REASONS]),
  ])
  .meta({ id: 'FailureReason' });

/** One or several statuses of a filter. */
const statusList = z
  .string()
  .max(100)
  .refine(
    (text) => text.split(',').every(isStatus),
    `must be one of ${SHOWN_STATUSES.join(', ')}, or several separated by commas`,
  );

function isStatus(text: string): text is ShownStatus {
  return SHOWN_STATUSES.some((each) => each === text);
}

/** A message in a response: alone, in a list, and after an action on it. */
export const messageSchema = z
  .object({
    messageId: z.string(),
    jobId: z.string().optional(),
    campaignId: z.string().optional(),
    subscriptionGroupId: z.string().optional(),
    useCase: z.enum(['tx', 'mk']),
    domainId: z.string(),
    from: z.string(),
    recipient: z.string(),
    role: z.enum(['to', 'cc', 'bcc']),
    subject: z.string(),
    status,
    reason: failureReason
      .optional()
      .describe(
        'Why a message is `deferred`, `bounced` or `failed`: the classification of the last reply, the `reasonCode` of `email_suppressed`, or the `reason` of `email_failed`. Absent when it is not known, and in responses of actions on the message.',
      ),
    attempts: z.int(),
    livemode: z
      .boolean()
      .describe('`false`: the message was sent with a test key or to the simulator, and does not leave.'),
    simulated: z
      .boolean()
      .optional()
      .describe('Present and true if `livemode` is false: statistics do not count the message.'),
    scheduledAt: z.string().optional().describe('Of a `scheduled` message: when it is sent.'),
    nextAttemptAt: z.string().optional(),
    heldBecause: holdReason.optional(),
    ...labelFields,
    createdAt: z.string(),
    updatedAt: z.string(),
  })
  .meta({ id: 'Message' });

const timelineEntry = z
  .looseObject({ type: z.enum(['event', 'attempt']), timestamp: z.string() })
  .meta({ id: 'TimelineEntry' });

const messageDetail = z
  .intersection(messageSchema, z.object({ timeline: z.array(timelineEntry) }))
  .meta({ id: 'MessageDetail' });

interface CommonQuery {
  recipient?: string | undefined;
  domainId?: string | undefined;
  campaignId?: string | undefined;
  jobId?: string | undefined;
  tag?: string | undefined;
  from?: string | undefined;
  to?: string | undefined;
}

function commonFilter(accountId: string, query: CommonQuery) {
  const from = query.from === undefined ? undefined : Date.parse(query.from);
  const to = query.to === undefined ? undefined : Date.parse(query.to);
  if (from !== undefined && to !== undefined && from > to) return invalid('from', 'must not be after `to`');
  const { recipient, domainId, campaignId, jobId, tag } = query;
  const recipientHash = recipient === undefined ? undefined : recipientIdentifier(recipient);
  return { accountId, ...definedFields({ recipientHash, domainId, campaignId, jobId, tag, from, to }) };
}

export const MESSAGE_EXAMPLE: z.output<typeof messageSchema> = {
  messageId: 'msg_1769860800000_2q8w4e6r1t5y',
  useCase: 'tx',
  domainId: 'domain_1769860800000_8m2k4x7q1zab',
  from: 'orders@example.com',
  recipient: 'ada@example.net',
  role: 'to',
  subject: 'Your order 10042',
  status: 'delivered',
  attempts: 1,
  livemode: true,
  createdAt: '2026-01-31T12:00:00.000Z',
  updatedAt: '2026-01-31T12:00:01.250Z',
};

const CANCELLED = 'The message has been cancelled.';
const RESCHEDULED = 'The message is sent at its new time.';
const DUE = 'The message is due now and is tried immediately.';

const updated = z.intersection(messageSchema, z.object({ message: z.string() }));

function presentUpdated(message: string, row: ListedMessage) {
  return { message, ...presentMessage(row) };
}

/** Reads in reader threads: the list, one message with its timeline, and the event feed. */
export function messageRoutes({ reader }: Pick<Context, 'reader'>): Route[] {
  return [
    route('GET /web-setup/messages', {
      operationId: 'listMessages',
      summary: 'List messages, newest first',
      description: SHORT_PAGES,
      query: z.object({
        ...messageFilters,
        ...paging,
        status: statusList
          .optional()
          .describe(
            `${SHOWN_STATUSES.map((each) => `\`${each}\``).join(', ')}, or several of them, separated by commas.`,
          ),
      }),
      response: {
        description: 'A page of messages.',
        data: z.object({
          messages: z.array(unchecked(messageSchema)),
          ...pageEndFields,
          examinedSince: z
            .string()
            .optional()
            .describe(
              'Present when the page ended because it had scanned the maximum number of rows: all messages accepted since this time were examined, by this page and those before it.',
            ),
        }),
        example: { messages: [MESSAGE_EXAMPLE], count: 1 },
      },
      page: pagesBySeq('messages'),
      narrowBy: ['recipient', 'jobId', 'campaignId', 'tag', 'from', 'to'],
      handle: async ({ caller, query, after }) => {
        const filter = messageFilter(caller.accountId, query);
        if (isRefusal(filter)) return filter;
        const statuses = query.status?.split(',').filter(isStatus);
        const page = await reader.query(caller.accountId, messagePage, {
          ...filter,
          ...(statuses === undefined ? {} : { statuses }),
          ...(after === null ? {} : { beforeSeq: after }),
          limit: query.limit,
        });
        const { rows, reasons, nextSeq, examinedSince } = page;
        return {
          messages: rows.map((row, index) => presentMessage(row, reasons[index])),
          ...endOf(rows, nextSeq),
          ...(examinedSince === null ? {} : { examinedSince: iso(examinedSince) }),
        };
      },
    }),
    route('GET /web-setup/messages/{id}', {
      operationId: 'getMessage',
      hidesUrls: 'query',
      summary: 'Get a message with its timeline of events and SMTP attempts',
      response: {
        description: 'The message.',
        data: unchecked(messageDetail),
        example: { ...MESSAGE_EXAMPLE, timeline: [{ type: 'event', ...EVENT_EXAMPLE }] },
      },
      refusals: ['MESSAGE_NOT_FOUND'],
      narrowBy: [],
      handle: async ({ caller, params }) => {
        const history = await reader.query(caller.accountId, messageHistory, params.id);
        if (history === null || history.message.account_id !== caller.accountId)
          return refuse('MESSAGE_NOT_FOUND', `There is no message ${params.id}`);
        return { ...presentMessage(history.message, history.reason), timeline: presentTimeline(history) };
      },
    }),
    route('GET /web-setup/events', {
      operationId: 'listEvents',
      summary: 'List events in order, oldest first',
      description: `Store \`nextKey\` and send it as \`lastKey\` of the next request to continue without a gap. \`nextKey\` is present whenever the page has events. ${SHORT_PAGES}\n\n${EVENT_KINDS_TEXT}\n\nEvents that a received mail caused (\`source\` \`dsn\` or \`arf\`) have \`verified\`. For a bounce or delay it is true if the report was sent to the return path of the message, for a complaint if the organization that received the message signed the report (DKIM). An unverified complaint suppresses the marketing stream only; an unverified bounce if it is repeated on another day or confirmed by an SMTP reply.`,
      query: z.object({
        ...common,
        ...paging,
        recipient: z.string().max(320).optional().describe('An address or its identifier `email_<md5>`.'),
        status: attemptedStatus.optional().describe('Events of messages whose current status is this one.'),
        event: eventKind.optional(),
        messageId: z.string().max(100).optional(),
      }),
      response: {
        description: 'A page of events.',
        data: z.object({
          events: z.array(unchecked(eventSchema)),
          count: z.int(),
          nextKey: z.string().optional(),
        }),
        example: { events: [EVENT_EXAMPLE], count: 1, nextKey: EXAMPLE_KEY },
      },
      page: pagesBySeq('events'),
      hidesUrls: 'query',
      narrowBy: ['messageId', 'recipient', 'jobId', 'campaignId', 'tag', 'from', 'to'],
      handle: async ({ caller, query, after }) => {
        const filter = commonFilter(caller.accountId, query);
        if (isRefusal(filter)) return filter;
        const { rows, nextSeq } = await reader.table(caller.accountId, 'events', 'feed', {
          ...filter,
          ...definedFields({ status: query.status, kind: query.event, messageId: query.messageId }),
          afterSeq: after ?? 0,
          limit: query.limit,
        });
        return { events: rows.map(presentEvent), ...endOf(rows, nextSeq) };
      },
    }),
  ];
}

/** Actions on a queued message: to change its time, to cancel it, and to try it now. */
export function messageActionRoutes({ queuedMail }: { queuedMail: QueuedMail }): Route[] {
  return [
    route('PATCH /web-setup/messages/{id}', {
      operationId: 'rescheduleMessage',
      refusesTestKeys: 'always',
      stores: () => false,
      summary: 'Change the time of a scheduled message',
      description:
        'Each recipient of a send has a message of its own. A message that is due cannot be changed.',
      body: z.object({ scheduledAt: scheduledTime }).meta({ id: 'RescheduleInput' }),
      refusesMisnamed: true,
      example: { scheduledAt: '2026-02-01T08:00:00Z' },
      response: {
        description: 'The updated message.',
        data: unchecked(updated),
        example: {
          message: RESCHEDULED,
          ...MESSAGE_EXAMPLE,
          status: 'scheduled',
          attempts: 0,
          scheduledAt: '2026-02-01T08:00:00.000Z',
          nextAttemptAt: '2026-02-01T08:00:00.000Z',
        },
      },
      refusals: ['MESSAGE_NOT_FOUND', 'INVALID_STATE'],
      handle: async ({ caller, params, body }) =>
        mapResult(await queuedMail.reschedule(caller.accountId, params.id, body.scheduledAt), (row) =>
          presentUpdated(RESCHEDULED, row),
        ),
    }),
    route('POST /web-setup/messages/{id}/cancel', {
      operationId: 'cancelMessage',
      stores: () => false,
      summary: 'Cancel a queued or scheduled message',
      description:
        'Records `email_failed` with the reason `cancelled`. A message that is being sent or final cannot be cancelled.',
      response: {
        description: 'The updated message.',
        data: unchecked(updated),
        example: { message: CANCELLED, ...MESSAGE_EXAMPLE, status: 'cancelled', attempts: 0 },
      },
      refusals: ['MESSAGE_NOT_FOUND', 'INVALID_STATE'],
      handle: async ({ caller, params }) =>
        mapResult(await queuedMail.cancel(caller.accountId, params.id), (row) =>
          presentUpdated(CANCELLED, row),
        ),
    }),
    route('POST /web-setup/messages/{id}/retry', {
      operationId: 'retryMessage',
      refusesTestKeys: 'always',
      stores: () => false,
      summary: 'Retry a deferred message now',
      description: 'Makes the message due now. `message` states why it waits, if it does.',
      response: {
        description: 'The updated message.',
        data: unchecked(updated),
        example: {
          message: DUE,
          ...MESSAGE_EXAMPLE,
          status: 'deferred',
          nextAttemptAt: '2026-01-31T12:04:00.000Z',
        },
      },
      refusals: ['MESSAGE_NOT_FOUND', 'INVALID_STATE'],
      handle: async ({ caller, params }) => {
        const retried = await queuedMail.retry(caller.accountId, params.id);
        return mapResult(retried, ({ report, message }) => presentUpdated(`The message ${report}.`, message));
      },
    }),
  ];
}

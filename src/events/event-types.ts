import * as z from 'zod';
import type { Classification } from '../mail/classify/classify.ts';
import { BOUNCE_CLASSES } from '../mail/classify/rules.ts';
import type { CampaignCount } from '../store/campaigns/campaign-counts.ts';
import { OPT_OUT_METHODS } from '../store/contacts/consent.ts';
import type { DomainStatus, SendingStop } from '../store/domains/domains.ts';
import { AUTOMATIC_KINDS } from '../store/inbound/inbound-mails.ts';
import type { MessageStatus } from '../store/messages/messages.ts';
import { RATE_SIGNALS } from '../store/sending-limits.ts';
import { SUPPRESSION_REASONS, SUPPRESSION_STREAMS } from '../store/suppressions.ts';

/*
 * All events: what each kind means, its fields, an example, and for events of messages the transition between states.
 * The recorder's types, the samples that webhook tests send, the schema in the OpenAPI document and its text are
 * derived from this table. A new kind is an entry here and a code in `store/rows/row-keys`.
 */

interface EventType<Fields extends z.ZodObject> {
  /** A clause, in lower case and without a period. */
  description: string;
  /** In the order of the documentation; stored and presented events have the order in which they were recorded. */
  fields: Fields;
  example: z.output<Fields>;
}

interface MessageEventType<Fields extends z.ZodObject> extends EventType<Fields> {
  transition: Transition;
  /**
   * The transition of an event that is known only from a report, which may be about a message whose outcome was
   * unknown because its connection was lost after the final dot. Default: `transition`.
   */
  reported?: Transition;
  count: CampaignCount;
  /** Also counted for the first such event of a message by a person. */
  uniqueCount?: CampaignCount;
}

interface Transition {
  /** The states in which the event can happen; in any other state it is not recorded. */
  from: readonly MessageStatus[];
  /** 'same': the event is recorded, the state does not change. */
  to: MessageStatus | 'same';
  /** The message leaves the queue. */
  final: boolean;
}

const WAITING: readonly MessageStatus[] = ['queued', 'deferred', 'sending'];
const ALWAYS: Transition = {
  from: [...WAITING, 'delivered', 'bounced', 'failed', 'complained', 'cancelled'],
  to: 'same',
  final: false,
};

const REPLY = {
  smtpCode: z
    .int()
    .nullable()
    .meta({ id: 'SmtpCode', description: 'Reply code (RFC 5321), null when a report quotes none.' }),
  enhancedCode: z.string().nullable().meta({
    id: 'EnhancedCode',
    description: 'Enhanced status code (RFC 3463), null when there was none.',
  }),
  diagnostic: z
    .string()
    .meta({ id: 'Diagnostic', description: 'Text of the reply, or of the report about it.' }),
};
const BOUNCE_TYPE = z.enum(['hard', 'soft', 'block']).meta({ id: 'BounceType' });
const FAILURE = { classification: z.enum(BOUNCE_CLASSES).meta({ id: 'BounceClassification' }), ...REPLY };

/** Fields of events that may be known from a DSN (RFC 3464). */
const DSN = {
  remoteMta: z
    .string()
    .nullable()
    .meta({ id: 'RemoteMta', description: 'The host that the report names.' })
    .optional(),
  source: z
    .literal('dsn')
    .meta({ id: 'DsnSource', description: 'Present when the event is known from a report.' })
    .optional(),
  verified: z
    .boolean()
    .meta({
      id: 'DsnVerified',
      description: 'Reports only: the report was sent to the return path of the message.',
    })
    .optional(),
};

/** The client of an event that a recipient caused. */
const CLIENT = {
  ip: z
    .string()
    .optional()
    .meta({ id: 'EventIp', description: 'Absent when it is not known or the recipient was erased.' }),
  userAgent: z
    .string()
    .optional()
    .meta({ id: 'EventUserAgent', description: 'Absent when it is not known or the recipient was erased.' }),
};

const VISIT = {
  ...CLIENT,
  isBot: z
    .boolean()
    .meta({ id: 'IsBot', description: 'The client is a crawler, a scanner or another program.' }),
  isProxy: z
    .boolean()
    .meta({ id: 'IsProxy', description: 'The request came through a privacy proxy or a scanner.' }),
  isFirst: z.boolean().meta({
    id: 'IsFirst',
    description: 'The first of this kind for the message, by a person or by a program.',
  }),
};

const REPORT_SOURCE = z.enum(['arf', 'report_link']);

export const ABUSE_REPORT_REASONS = ['never_asked', 'asked_to_stop', 'fraud', 'other'] as const;
export type AbuseReportReason = (typeof ABUSE_REPORT_REASONS)[number];

/** Codes of refused sends that are about the recipient, not about the request. */
export const RECIPIENT_REFUSALS = [
  'CONSENT_REQUIRED',
  'RECIPIENT_UNSUBSCRIBED',
  'RECIPIENT_SUPPRESSED',
] as const;
export type RecipientRefusal = (typeof RECIPIENT_REFUSALS)[number];
/** Why a recipient is refused: the reason of the suppression, no consent, or a pause that the person chose. */
export const RECIPIENT_REFUSAL_REASONS = [...SUPPRESSION_REASONS, 'not_subscribed', 'paused'] as const;
export type RecipientRefusalReason = (typeof RECIPIENT_REFUSAL_REASONS)[number];

export const FAILURE_REASONS = ['expired', 'cancelled', 'domain_deleted', 'loop', 'content_invalid'] as const;

const SCOPES = ['group', 'marketing', 'transactional', 'all'] as const;

const DOMAIN_STATUSES = [
  'PENDING',
  'SUCCESS',
  'TEMPORARY_FAILURE',
  'FAILED',
] as const satisfies readonly DomainStatus[];
const CHECKS = ['dkim', 'spf', 'dmarc', 'mx', 'tracking', 'altDkim', 'returnPathSpf'] as const;
export const DOMAIN_STATUS = z.enum(DOMAIN_STATUSES).meta({ id: 'DomainStatus' });
/** The fields of every domain event. */
export const DOMAIN_EVENT_SCHEMA = z.object({
  domain: z.string(),
  status: DOMAIN_STATUS,
  previousStatus: DOMAIN_STATUS,
  failing: z
    .array(z.object({ check: z.enum(CHECKS), hint: z.string() }))
    .describe('The required checks that do not pass, with what to do.'),
});

const EXAMPLE_VISIT = {
  ip: '192.0.2.1',
  userAgent: 'Example/1.0',
  isBot: false,
  isProxy: false,
  isFirst: true,
};

export const MESSAGE_EVENT_TYPES = {
  email_sent: messageEvent({
    description: 'the first delivery attempt began',
    fields: z.object({}),
    example: {},
    // Also from `sending`: a message leased by a daemon that was killed is leased again.
    transition: { from: WAITING, to: 'sending', final: false },
    count: 'sent',
  }),
  email_delivered: messageEvent({
    description: 'the destination accepted the message',
    fields: z.object({
      ...REPLY,
      remoteHost: z.string().optional().describe('The host that accepted the message.'),
      tls: z.string().nullable().optional().describe('TLS version, null for a connection without TLS.'),
      ...DSN,
    }),
    example: {
      smtpCode: 250,
      enhancedCode: '2.0.0',
      diagnostic: 'OK',
      remoteHost: 'mx.example.com',
      tls: 'TLSv1.3',
    },
    transition: { from: ['sending'], to: 'delivered', final: true },
    reported: { from: ['sending', 'deferred'], to: 'delivered', final: true },
    count: 'delivered',
  }),
  email_delayed: messageEvent({
    description: 'an attempt failed temporarily; another one follows',
    fields: z.object({
      attempt: z.int().optional().describe('Number of the attempt, from 1.'),
      nextAttemptAt: z.iso.datetime().optional(),
      nextLane: z
        .literal('secondary')
        .optional()
        .describe(
          'The next attempt uses the secondary lane, because our address was refused or no host was reached.',
        ),
      ...FAILURE,
      ...DSN,
    }),
    example: {
      attempt: 1,
      nextAttemptAt: '2026-02-01T12:05:00.000Z',
      classification: 'greylisted',
      smtpCode: 451,
      enhancedCode: '4.7.1',
      diagnostic: 'Greylisted, please try again later',
    },
    transition: { from: ['sending'], to: 'deferred', final: false },
    // A relay behind the server that accepted the message retries; this side has finished.
    reported: { from: ['sending', 'deferred', 'delivered'], to: 'same', final: false },
    count: 'deferred',
  }),
  email_bounced: messageEvent({
    description: 'the destination rejected the message permanently, or a report about it states so',
    fields: z.object({
      bounceType: BOUNCE_TYPE,
      ...FAILURE,
      ...DSN,
      source: z.enum(['smtp', 'local', 'dsn']).describe('`local`: the message was not sent to any host.'),
      suppressed: z
        .boolean()
        .optional()
        .describe('Whether this bounce suppressed the recipient; `false` for simulated mail.'),
    }),
    example: {
      bounceType: 'hard',
      classification: 'invalid-recipient',
      smtpCode: 550,
      enhancedCode: '5.1.1',
      diagnostic: 'No such user',
      source: 'smtp',
      suppressed: true,
    },
    // Also after a delivery: a server behind the one that accepted the message may send a DSN.
    transition: { from: ['sending', 'delivered'], to: 'bounced', final: true },
    reported: { from: ['sending', 'deferred', 'delivered'], to: 'bounced', final: true },
    count: 'bounced',
  }),
  email_suppressed: messageEvent({
    description:
      'a send was refused because of its recipient, or a queued message was dropped for that reason',
    fields: z.object({
      reasonCode: z.enum([...RECIPIENT_REFUSALS, 'CONSENT_WITHDRAWN']),
      reason: z.enum([...RECIPIENT_REFUSAL_REASONS, 'bounced', 'complained', 'unsubscribed', 'suppressed']),
    }),
    example: { reasonCode: 'RECIPIENT_SUPPRESSED', reason: 'hard_bounce' },
    transition: { from: WAITING, to: 'failed', final: true },
    count: 'failed',
  }),
  email_rejected: messageEvent({
    description: 'the destination rejected the content of the message, not its recipient',
    fields: z.object({
      bounceType: BOUNCE_TYPE,
      ...FAILURE,
      source: z.enum(['smtp', 'local']),
    }),
    example: {
      bounceType: 'block',
      classification: 'content-rejected',
      smtpCode: 550,
      enhancedCode: '5.6.0',
      diagnostic: 'Message refused',
      source: 'smtp',
    },
    transition: { from: ['sending', 'delivered'], to: 'bounced', final: true },
    // The state of such a message is `bounced`.
    count: 'bounced',
  }),
  email_failed: messageEvent({
    description: 'the message was dropped without a permanent rejection by the destination',
    fields: z.object({
      reason: z
        .enum(FAILURE_REASONS)
        .describe(
          '`expired`: not delivered in time. `loop`: the message would be routed in a loop. `content_invalid`: its stored content cannot be composed.',
        ),
      attempts: z.int().optional(),
      classification: FAILURE.classification.optional(),
      smtpCode: REPLY.smtpCode.optional(),
      enhancedCode: REPLY.enhancedCode.optional(),
      diagnostic: REPLY.diagnostic.optional(),
      lastDiagnostic: z.string().optional().describe('Of the last attempt, for `expired`.'),
    }),
    example: { reason: 'expired', attempts: 12, lastDiagnostic: 'connection timed out' },
    transition: { from: WAITING, to: 'failed', final: true },
    count: 'failed',
  }),
  email_complained: messageEvent({
    description: 'the recipient reported the message as unwanted',
    fields: z.object({
      source: REPORT_SOURCE.describe(
        '`arf`: a feedback report (RFC 5965). `report_link`: the link in the mail.',
      ),
      feedbackType: z.string().describe('RFC 5965 §3.1: `abuse`, `fraud` and others.'),
      verified: z
        .boolean()
        .optional()
        .describe('`arf` only: the organization that received the message signed the report (DKIM).'),
      reportReason: z.enum(ABUSE_REPORT_REASONS).optional(),
      ...CLIENT,
      suppressed: z
        .boolean()
        .optional()
        .describe('Whether the complaint suppressed the recipient; `false` for simulated mail.'),
    }),
    example: { source: 'arf', feedbackType: 'abuse', verified: true, suppressed: true },
    transition: { from: ['sending', 'delivered', 'bounced'], to: 'complained', final: true },
    reported: { from: ['sending', 'deferred', 'delivered', 'bounced'], to: 'complained', final: true },
    count: 'complained',
  }),
  email_opened: messageEvent({
    description: 'the tracking image of the message was loaded',
    fields: z.object(VISIT),
    example: EXAMPLE_VISIT,
    transition: ALWAYS,
    count: 'opened',
    uniqueCount: 'uniqueOpened',
  }),
  email_clicked: messageEvent({
    description: 'a tracked link of the message was followed',
    fields: z.object({
      url: z.string().describe('Without path and query when the recipient was erased before the click.'),
      ...VISIT,
    }),
    example: { url: 'https://example.com/', ...EXAMPLE_VISIT },
    transition: ALWAYS,
    count: 'clicked',
    uniqueCount: 'uniqueClicked',
  }),
  email_unsubscribed: messageEvent({
    description: 'the recipient opted out',
    fields: z.object({
      method: z.enum(OPT_OUT_METHODS),
      scope: z.enum(SCOPES).optional().describe('What the recipient no longer receives.'),
      stream: z
        .enum(SUPPRESSION_STREAMS)
        .optional()
        .describe('The stream, if the opt-out was added to the suppression list.'),
      ...CLIENT,
    }),
    example: { method: 'one_click', scope: 'marketing' },
    transition: ALWAYS,
    count: 'unsubscribed',
  }),
};

export const DOMAIN_EVENT_TYPES = {
  domain_verified: domainEvent('all required checks of the domain pass', {
    domain: 'example.com',
    status: 'SUCCESS',
    previousStatus: 'PENDING',
    failing: [],
  }),
  domain_failing: domainEvent('a required check of a verified domain does not pass; sending continues', {
    domain: 'example.com',
    status: 'TEMPORARY_FAILURE',
    previousStatus: 'SUCCESS',
    failing: [{ check: 'spf', hint: 'Publish the SPF record' }],
  }),
  domain_failed: domainEvent('a required check has not passed for 72 hours; sending has stopped', {
    domain: 'example.com',
    status: 'FAILED',
    previousStatus: 'TEMPORARY_FAILURE',
    failing: [{ check: 'spf', hint: 'Publish the SPF record' }],
  }),
  domain_deleted: domainEvent('the domain was deleted; `status` and `previousStatus` are its last status', {
    domain: 'example.com',
    status: 'SUCCESS',
    previousStatus: 'SUCCESS',
    failing: [],
  }),
};

const EXAMPLE_FIGURES = { messages: 310, events: 27, rate: 8.7, lowerBound: 5.4, limit: 5 };

/** Events of the installation; the accounts of the operator have them (`webhooks.operatorAccounts`). */
export const OPERATOR_EVENT_TYPES = {
  source_address_blocked: {
    description:
      'a receiver refuses mail from one of our addresses; only the accounts of the operator have this event',
    fields: z.object({
      address: z.string().describe('The source address, as receivers see it.'),
      receiver: z.string().describe('The shaping profile, the MX hosts or the provider that refuses it.'),
      reply: z.string().describe('The last refusal, without mail addresses.'),
      since: z.iso.datetime(),
      nextProbeAt: z.iso.datetime().describe('When one message is sent from the address again.'),
      delisting: z.string().describe('How to ask for the removal of the block.'),
    }),
    example: {
      address: '192.0.2.1',
      receiver: 'microsoft-consumer',
      reply: "550 5.7.1 Unfortunately, messages from [192.0.2.1] weren't sent. (S3140)",
      since: '2026-02-01T12:00:00.000Z',
      nextProbeAt: '2026-02-01T12:30:00.000Z',
      delisting: 'Request support at https://olcsupport.office.com.',
    },
  },
};

const LIMIT_REASON = z.enum(RATE_SIGNALS).describe('The rate that is too high.');
export const RATE_FIGURES = z
  .object({
    messages: z.int().describe('Messages that were counted.'),
    events: z.int().describe('Those of them that bounced, were complained about, blocked or opted out of.'),
    rate: z.number().describe('Percent.'),
    lowerBound: z.number().describe('Percent: the rate is higher with a confidence of 95 %.'),
    limit: z.number().describe('Percent: the limit that was reached.'),
  })
  .meta({ id: 'RateFigures' });
/** The rate because of which sending was limited. */
export type RateFigures = z.output<typeof RATE_FIGURES>;

const AUTHENTICATION_STATUS = z
  .enum(['pass', 'fail', 'softfail', 'neutral', 'none', 'policy', 'temperror', 'permerror'])
  .meta({ id: 'AuthenticationStatus', description: 'A result of RFC 8601.' });
/** Whether the sender of an inbound mail is who it states to be. */
export const INBOUND_AUTHENTICATION = z
  .object({
    spf: AUTHENTICATION_STATUS,
    dkim: AUTHENTICATION_STATUS.describe('`pass` if any signature passes.'),
    dmarc: AUTHENTICATION_STATUS,
    arc: AUTHENTICATION_STATUS,
    spfDomain: z.string().describe('The domain that SPF was checked for.'),
    dkimDomains: z.array(z.string()).describe('Domains whose signatures pass.'),
    dmarcPolicy: z
      .enum(['none', 'quarantine', 'reject'])
      .nullable()
      .describe("The policy of the author's domain; null: none is known."),
  })
  .meta({ id: 'InboundAuthentication' });
export const PARSE_ERRORS = ['too-long', 'failed'] as const;
export const AUTOMATIC = z.enum(AUTOMATIC_KINDS).nullable().meta({
  id: 'AutomaticKind',
  description:
    'How the mail declares itself: an automatic reply, other generated mail (also a report, and mail without an envelope sender), mail of a list, bulk mail; null: it does not.',
});

const LIMITED_STREAM = {
  useCase: z.enum(['tx', 'mk']).optional(),
  domain: z.string().optional().describe('Absent: all domains of the account.'),
  provider: z.string().optional().describe('Absent: all mailbox providers.'),
};

/** Events of an account that belong to none of its messages. */
export const ACCOUNT_EVENT_TYPES = {
  campaign_paused: {
    description: 'a campaign was stopped automatically, because one of its rates is too high',
    fields: z.object({
      campaignId: z.string(),
      campaignName: z.string(),
      reason: LIMIT_REASON,
      figures: RATE_FIGURES,
      remedy: z.string().describe('What to do.'),
    }),
    example: {
      campaignId: 'campaign_1769860800000_9z1x3c5v7b2n',
      campaignName: 'Spring sale',
      reason: 'hard_bounces',
      figures: EXAMPLE_FIGURES,
      remedy: 'Remove the addresses that bounced.',
    },
  },
  sending_limited: {
    description: 'mail of the account, a domain or to a provider is slowed or stopped automatically',
    fields: z.object({
      limitId: z.string(),
      level: z.enum(['slow', 'pause']),
      ...LIMITED_STREAM,
      reason: LIMIT_REASON,
      figures: RATE_FIGURES,
      perMinute: z.int().optional().describe('Messages per minute while it is slowed.'),
      remedy: z.string().describe('What to do.'),
    }),
    example: {
      limitId: 'limit_1769860800000_9z1x3c5v7b2n',
      level: 'pause',
      useCase: 'mk',
      domain: 'example.com',
      reason: 'complaints',
      figures: { ...EXAMPLE_FIGURES, messages: 4100, events: 17, rate: 0.41, lowerBound: 0.22, limit: 0.3 },
      remedy: 'Send only to people who asked for this mail.',
    },
  },
  sending_resumed: {
    description: 'a campaign or mail that was limited automatically is sent normally again',
    fields: z.object({
      campaignId: z.string().optional(),
      limitId: z.string().optional(),
      ...LIMITED_STREAM,
      by: z.string().optional().describe('Who resumed it; absent: the rates are low again.'),
      reason: z.string().describe('The reason that was given.'),
    }),
    example: {
      campaignId: 'campaign_1769860800000_9z1x3c5v7b2n',
      by: 'key_7f3k2m9x0q1z',
      reason: 'Removed all addresses that were older than a year',
    },
  },
  email_received: {
    description: 'mail came to an inbound route and was parsed',
    fields: z.object({
      inboundId: z.string(),
      routeId: z.string(),
      contactIdentifier: z
        .string()
        .optional()
        .describe('Of the author; absent when the field From has no address.'),
      from: z.string().describe('Address of the field From; empty for none.'),
      to: z.array(z.string()).describe('The recipient that the mail came for.'),
      sender: z.string().describe('Of the envelope; empty for none.'),
      subject: z.string(),
      text: z.string().describe('At most 64 KB; the text of the HTML if there is no text part.'),
      textCut: z.boolean().describe('Whether `text` is longer.'),
      attachments: z
        .array(
          z.object({
            name: z.string(),
            type: z.string(),
            size: z.int().describe('Bytes.'),
            url: z.string().describe('Needs no key; valid for 7 days.'),
          }),
        )
        .describe('At most 50.'),
      size: z.int().describe('Bytes of the whole mail.'),
      authentication: INBOUND_AUTHENTICATION,
      inReplyToMessageId: z
        .string()
        .nullable()
        .describe('The message of the account that it answers; null: none was found.'),
      automatic: AUTOMATIC,
      loop: z.boolean().describe('The mail passed this server before: do not answer it.'),
      parseError: z
        .enum(PARSE_ERRORS)
        .nullable()
        .describe('Why there is neither text nor attachments; the source is stored.'),
    }),
    example: {
      inboundId: 'inb_1769860800000_4k6j8h2g5f1d',
      routeId: 'route_1769860800000_7q9w2e4r6t8y',
      contactIdentifier: 'email_ae2c0afa556b74f2d501305b54c34910',
      from: 'grace@example.net',
      to: ['support@in.example.com'],
      sender: 'grace@example.net',
      subject: 'Re: Your order',
      text: 'Thank you, it arrived.\n',
      textCut: false,
      attachments: [],
      size: 2140,
      authentication: {
        spf: 'pass' as const,
        dkim: 'pass' as const,
        dmarc: 'pass' as const,
        arc: 'none' as const,
        spfDomain: 'example.net',
        dkimDomains: ['example.net'],
        dmarcPolicy: 'reject' as const,
      },
      inReplyToMessageId: 'msg_1769860800000_2w4e6r8t1y3u',
      automatic: null,
      loop: false,
      parseError: null,
    },
  },
  erasure_requested: {
    description:
      'a person asked on the preference page to be erased; erase the contact to complete the request',
    fields: z.object({ contactIdentifier: z.string() }),
    example: { contactIdentifier: 'email_ae2c0afa556b74f2d501305b54c34910' },
  },
};

export const EVENT_TYPES = {
  ...MESSAGE_EVENT_TYPES,
  ...DOMAIN_EVENT_TYPES,
  ...OPERATOR_EVENT_TYPES,
  ...ACCOUNT_EVENT_TYPES,
};

export type MessageEventKind = keyof typeof MESSAGE_EVENT_TYPES;
export type DomainEventKind = keyof typeof DOMAIN_EVENT_TYPES;
export type OperatorEventKind = keyof typeof OPERATOR_EVENT_TYPES;
export type AccountEventKind = keyof typeof ACCOUNT_EVENT_TYPES;
export type EventKind = MessageEventKind | DomainEventKind | OperatorEventKind | AccountEventKind;

export const MESSAGE_EVENT_KINDS = kindsOf(MESSAGE_EVENT_TYPES);
export const DOMAIN_EVENT_KINDS = kindsOf(DOMAIN_EVENT_TYPES);
export const OPERATOR_EVENT_KINDS = kindsOf(OPERATOR_EVENT_TYPES);
export const ACCOUNT_EVENT_KINDS = kindsOf(ACCOUNT_EVENT_TYPES);
export const EVENT_KINDS = [
  ...MESSAGE_EVENT_KINDS,
  ...DOMAIN_EVENT_KINDS,
  ...OPERATOR_EVENT_KINDS,
  ...ACCOUNT_EVENT_KINDS,
] as const;

/** Whether the text is the kind of an event of a message, a domain or the installation. */
export function isEventKind(text: string): text is EventKind {
  return Object.hasOwn(EVENT_TYPES, text);
}

/** Whether the text is the kind of an event of a message; false for those of domains. */
export function isMessageEventKind(text: string): text is MessageEventKind {
  return Object.hasOwn(MESSAGE_EVENT_TYPES, text);
}

/** The fields of each kind. */
export type EventFields = { [Kind in EventKind]: z.output<(typeof EVENT_TYPES)[Kind]['fields']> };

/** What happened to a message: a kind with its fields. */
export type MessageEvent = {
  [Kind in MessageEventKind]: { kind: Kind; fields: EventFields[Kind] } & (Kind extends 'email_bounced'
    ? { effect: BounceEffect }
    : unknown);
}[MessageEventKind];

/** Why a message that leaves the queue is not sent although it was accepted. */
export type Obstacle =
  /** The message waits until its campaign is resumed, and does not expire until then. */
  | { kind: 'hold' }
  /** The message waits until its account is enabled, its domain verified or its stream resumed, but not beyond its expiry. */
  | { kind: 'hold_until_expiry'; reason: SendingStop }
  /** The message is dropped with this event. */
  | Extract<MessageEvent, { kind: 'email_suppressed' | 'email_failed' }>;

/** What the classifier states about a bounce beyond the fields of the event. */
export type BounceEffect = Pick<Classification, 'scope' | 'suppress'>;

/**
 * The state that an event leads to from `status`, null when it cannot happen in that state; `reported`: the event is
 * known from a report only.
 */
export function nextState(
  status: MessageStatus,
  kind: MessageEventKind,
  reported = false,
): { status: MessageStatus; final: boolean } | null {
  const type: MessageEventType<z.ZodObject> = MESSAGE_EVENT_TYPES[kind];
  const { from, to, final } = (reported ? type.reported : undefined) ?? type.transition;
  if (!from.includes(status)) return null;
  return { status: to === 'same' ? status : to, final };
}

function messageEvent<Fields extends z.ZodObject>(type: MessageEventType<Fields>): MessageEventType<Fields> {
  return type;
}

function domainEvent(
  description: string,
  example: z.output<typeof DOMAIN_EVENT_SCHEMA>,
): EventType<typeof DOMAIN_EVENT_SCHEMA> {
  return { description, fields: DOMAIN_EVENT_SCHEMA, example };
}

function kindsOf<Kind extends string>(types: Record<Kind, unknown>): readonly Kind[] {
  // Sound: the tables above have no other keys than those of their types.
  return Object.keys(types) as Kind[];
}

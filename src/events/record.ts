import { type Refusal, refuse } from '../core/refusal.ts';
import { withoutNulls } from '../core/without-nulls.ts';
import { emailIdentifier } from '../mail/identifier.ts';
import type { Context } from '../store/context.ts';
import type { DomainRow, Stream } from '../store/domains/domains.ts';
import type { NewEvent } from '../store/messages/events.ts';
import type { MessageRow } from '../store/messages/messages.ts';
import type { Tables } from '../store/tables.ts';
import type { MovedMessage, MovedReports } from '../store/transfer/moved-messages.ts';
import {
  countCampaignEvent,
  countEgressComplaint,
  countMessageEvent,
  countUnknownComplaint,
  isCancellation,
} from './counts.ts';
import { type ReportedMessage, suppressAfterBounce, suppressAfterComplaint } from './effects.ts';
import { recordEngagement } from './engagement.ts';
import { fieldsAfterErasure, hasPersonalFields, isErased, withoutPersonalFields } from './erased.ts';
import {
  type AccountEventKind,
  type DomainEventKind,
  type EventFields,
  type MessageEvent,
  type MessageEventKind,
  nextState,
  type OperatorEventKind,
} from './event-types.ts';
import { isWanted } from './webhook-filter.ts';

export type KnownMovedMessage = MovedMessage & MovedReports;
export type MovedEvent = Extract<MessageEvent, { kind: 'email_bounced' | 'email_complained' }>;

/** The fields of a domain's event; the recorder adds the name of the domain. */
export type DomainEventFields = Omit<EventFields[DomainEventKind], 'domain'>;

export interface MessageEventOptions {
  /** The event is known from a report only: the transitions of reports apply. Default: false. */
  reported?: boolean;
  /** The number of attempts, where the event is the result of one. Null, the default: unchanged. */
  attempts?: number | null;
  /** When it happened, epoch ms. Default: now. */
  at?: number;
  /** The source address of the attempt, '' for one without a name. Default: that of the message's last attempt. */
  source?: string;
}

/** Fields that events of messages have from the message's row; they identify the recipient where there is no row. */
export interface MessageContext {
  jobId?: string;
  campaignId?: string;
  subscriptionGroupId?: string;
  useCase?: Stream;
  from?: string;
  recipient?: string;
  /** `email_<md5>`. */
  contactIdentifier?: string | undefined;
  subject?: string;
  tags?: readonly string[];
  metadata?: Readonly<Record<string, string>>;
  /** False for a send that was refused to a test key; else it is that of the message. */
  livemode?: boolean;
}

export interface EventWithoutMessage<Kind extends MessageEventKind> {
  accountId: string;
  domainId: string | null;
  fields: EventFields[Kind] & MessageContext;
}

/** What is known about a complaint without a message. */
export interface UnknownComplaint {
  accountId: string;
  stream: Stream;
  campaignId: string | null;
  subscriptionGroupId: string | null;
  domainId: string | null;
  recipient: string;
  receiver: string;
}

/** Called in the same unit of work after a recipient was suppressed or a suppression was removed. */
export type OnSuppressionChange = (tables: Tables, accountId: string, recipientHash: string) => void;

/**
 * The only place where a message changes state. Every event is recorded inside a unit of work: the new state, the event and
 * its effects (suppression, removal from the queue, rows for subscribed webhooks) are one transaction.
 *
 * Keeps no state. The callbacks are called inside the unit of work, which may still be rolled back.
 */
export function createRecorder(
  { clock, ids }: Pick<Context, 'clock' | 'ids'>,
  {
    onSuppressionChange,
    onWebhookDue,
    operatorAccounts = () => [],
  }: {
    onSuppressionChange?: OnSuppressionChange;
    /** Called when a delivery to a webhook was inserted, by a unit of work that is not committed yet. */
    onWebhookDue?: (webhook: number) => void;
    /** The accounts that have the events of the installation. Default: none. */
    operatorAccounts?: (tables: Tables) => readonly string[];
  } = {},
) {
  /** Inserts an event, and a delivery for each webhook that subscribes to its kind. `also`: a webhook that has it in any case. */
  function insert(tables: Tables, event: Omit<NewEvent, 'event_id'>, also: number | null = null): void {
    const eventSeq = tables.events.insert({ event_id: ids.make('evt'), ...event });
    const subscribed = tables.webhooks.subscribed(event.account_id, event.kind);
    for (const webhook of also === null ? subscribed : new Set([...subscribed, also])) {
      const selection = webhook === also ? null : tables.webhooks.selection(webhook);
      if (selection !== null && !isWanted(tables, selection, event.kind, eventSeq)) continue;
      tables.webhookDeliveries.insert({ webhook, eventSeq, deliveryId: ids.make('whd'), at: event.at });
      onWebhookDue?.(webhook);
    }
  }

  /** Inserts an event that belongs to no message. `data`: its fields as JSON. */
  function insertOther(
    tables: Tables,
    of: { accountId: string; domainId?: string | null },
    kind: NewEvent['kind'],
    data: string,
  ): void {
    insert(tables, {
      account_id: of.accountId,
      kind,
      at: clock.now(),
      message_seq: null,
      domain_id: of.domainId ?? null,
      data,
    });
  }

  /** Counts an event of a message and inserts it. `data`: its fields as JSON. */
  function insertMessageEvent(
    tables: Tables,
    message: MessageRow,
    event: MessageEvent,
    at: number,
    data: string,
    source?: string,
  ): void {
    const { account_id, seq } = message;
    countCampaignEvent(tables, message, event, at);
    countMessageEvent(tables, message, event, at, source);
    recordEngagement(tables, message, event, at);
    const stored = isErased(message) ? fieldsAfterErasure(data) : data;
    insert(tables, { account_id, kind: event.kind, at, message_seq: seq, domain_id: null, data: stored });
  }

  /** Whether the person of an event is a contact. Where the message was purged, nothing else shows that it was not erased. */
  const isContact = (tables: Tables, accountId: string, { contactIdentifier }: MessageContext) =>
    contactIdentifier !== undefined && tables.contacts.byIdentifier(accountId, contactIdentifier) !== null;

  const withoutMessage =
    <Kind extends MessageEventKind>(kind: Kind) =>
    (tables: Tables, { accountId, domainId, fields }: EventWithoutMessage<Kind>) => {
      const data = JSON.stringify(fields);
      const mayBeErased = hasPersonalFields(fields) && !isContact(tables, accountId, fields);
      insertOther(tables, { accountId, domainId }, kind, mayBeErased ? withoutPersonalFields(data) : data);
    };

  /** Returns whether the event suppressed the recipient, which simulated mail never does; null for other events. */
  function suppress(
    tables: Tables,
    message: ReportedMessage & Pick<MessageRow, 'simulated'>,
    event: MessageEvent,
    at: number,
  ): boolean | null {
    if (event.kind !== 'email_bounced' && event.kind !== 'email_complained') return null;
    if (message.simulated === 1) return false;
    return event.kind === 'email_bounced'
      ? suppressAfterBounce(tables, message, event.fields, event.effect, at)
      : suppressAfterComplaint(tables, message, event.fields, at);
  }

  return {
    /** Returns false, and changes nothing, when the event cannot happen in the state of the message. */
    message: (
      tables: Tables,
      message: MessageRow,
      event: MessageEvent,
      { reported = false, attempts = null, at = clock.now(), source }: MessageEventOptions = {},
    ): boolean => {
      const { kind, fields } = event;
      const next = nextState(message.status, kind, reported);
      if (next === null) return false;
      const status = isCancellation(event) ? 'cancelled' : next.status;
      const firstSent = kind === 'email_sent' && message.sent_at === null;
      const sentAt = firstSent ? at : null;
      tables.messages.setState(message.seq, status, at, sentAt, next.final ? at : null, attempts);
      if (next.final) tables.queue.remove(message.seq);
      // Leased again after a restart or a deferral: `email_sent` is recorded once for each message.
      if (kind === 'email_sent' && !firstSent) return true;
      const suppressed = suppress(tables, message, event, at);
      if (suppressed === true) onSuppressionChange?.(tables, message.account_id, message.recipient_hash);
      if (kind === 'email_complained' && fields.verified === true) countEgressComplaint(tables, message, at);
      insertMessageEvent(
        tables,
        message,
        event,
        at,
        JSON.stringify(suppressed === null ? fields : { ...fields, suppressed }),
        source,
      );
      return true;
    },
    /** Records `email_sent`, at `at`, for a message that was inserted as `sending`. */
    sent: (tables: Tables, message: MessageRow, at: number): void =>
      insertMessageEvent(tables, message, { kind: 'email_sent', fields: {} }, at, '{}'),
    /**
     * Records a report about a message that the account sent before it came from another installation. Returns false, and
     * changes nothing, when there was such a report before.
     */
    moved: (tables: Tables, message: KnownMovedMessage, event: MovedEvent): boolean => {
      const report = event.kind === 'email_bounced' ? 'bounced' : 'complained';
      if (message[report] === 1) return false;
      tables.movedMessages.mark(message.message_id, report);
      const at = clock.now();
      const { account_id: accountId, recipient_hash: hash, use_case: useCase } = message;
      // The address is not known, as of an erased recipient.
      const reported = { ...message, recipient: hash, seq: null, simulated: 0 } as const;
      const suppressed = suppress(tables, reported, event, at);
      if (suppressed === true) onSuppressionChange?.(tables, accountId, hash);
      countCampaignEvent(tables, reported, event, at);
      const context: MessageContext = {
        contactIdentifier: hash,
        useCase,
        ...withoutNulls({
          campaignId: message.campaign_id,
          subscriptionGroupId: message.subscription_group_id,
        }),
      };
      const fields = { ...context, ...event.fields, ...(suppressed === null ? {} : { suppressed }) };
      insertOther(tables, { accountId }, event.kind, JSON.stringify(fields));
      return true;
    },
    /**
     * Restores the state of a leased message whose attempt did not begin: `queued` before its first attempt, `deferred`
     * after one. There is no event.
     */
    returned: (tables: Tables, message: MessageRow): void => {
      if (message.status !== 'sending') return;
      const status = message.attempts === 0 ? 'queued' : 'deferred';
      tables.messages.setState(message.seq, status, clock.now(), null, null);
    },
    /** Records only the final state of a leased message: its event or an effect of it cannot be recorded. */
    endedWithoutEvent: (
      tables: Tables,
      message: MessageRow,
      status: 'delivered' | 'bounced' | 'failed',
    ): void => {
      const at = clock.now();
      tables.messages.setState(message.seq, status, at, null, at);
      tables.queue.remove(message.seq);
    },
    /** Tests whether events can be recorded: throws if not, else returns a refusal, which rolls the inserted event back. */
    probe: (tables: Tables): Refusal => {
      const at = clock.now();
      const event = { event_id: ids.make('evt'), account_id: '', kind: 'email_sent', at, data: '{}' };
      tables.events.insert({ ...event, message_seq: null, domain_id: null });
      return refuse('UNAVAILABLE', 'The event was inserted only as a test');
    },
    domain: (tables: Tables, domain: DomainRow, kind: DomainEventKind, fields: DomainEventFields): void => {
      const of = { accountId: domain.account_id, domainId: domain.domain_id };
      insertOther(tables, of, kind, JSON.stringify({ domain: domain.name, ...fields }));
    },
    /** Records an event of an account that belongs to no message. */
    account: <Kind extends AccountEventKind>(
      tables: Tables,
      of: { accountId: string; domainId?: string | null },
      kind: Kind,
      fields: EventFields[Kind],
    ): void => insertOther(tables, of, kind, JSON.stringify(fields)),
    /** Records that mail came to a route. `webhookId`: the webhook of the route, which has the event if it is active. */
    received: (
      tables: Tables,
      accountId: string,
      fields: EventFields['email_received'],
      webhookId: string | null,
    ): void => {
      const webhook = webhookId === null ? null : tables.webhooks.get(accountId, webhookId);
      insert(
        tables,
        {
          account_id: accountId,
          kind: 'email_received',
          at: clock.now(),
          message_seq: null,
          domain_id: null,
          data: JSON.stringify(fields),
        },
        webhook?.is_active === 1 ? webhook.number : null,
      );
    },
    /** Records an event of the installation for each account of the operator. */
    operator: <Kind extends OperatorEventKind>(
      tables: Tables,
      kind: Kind,
      fields: EventFields[Kind],
    ): void => {
      for (const accountId of operatorAccounts(tables))
        insertOther(tables, { accountId }, kind, JSON.stringify(fields));
    },
    /** Records that a send was refused because of its recipient; there is no message. */
    refusedSend: withoutMessage('email_suppressed'),
    /** Records an opt-out that belongs to no message, or to one that was purged. */
    optedOut: withoutMessage('email_unsubscribed'),
    /** Records a complaint about a message that was purged. */
    complained: withoutMessage('email_complained'),
    /**
     * Records a verified complaint about a message that is not known, of which its campaign and domain may be. `recipient`: who
     * complained; '': that is not known. `receiver`: the domain of the organization that reports it.
     */
    complainedUnknown: (
      tables: Tables,
      of: UnknownComplaint,
      fields: Extract<MovedEvent, { kind: 'email_complained' }>['fields'],
    ): void => {
      const at = clock.now();
      const { accountId, stream, campaignId, subscriptionGroupId, domainId, recipient, receiver } = of;
      const hash = recipient === '' ? undefined : emailIdentifier(recipient);
      if (hash !== undefined) {
        // The address of a person who was erased must not be stored again.
        const reported = {
          account_id: accountId,
          recipient_hash: hash,
          recipient: hash,
          use_case: stream,
          seq: null,
        };
        if (suppressAfterComplaint(tables, reported, fields, at))
          onSuppressionChange?.(tables, accountId, hash);
      }
      countUnknownComplaint(tables, { accountId, stream, campaignId, domainId, receiver }, at);
      const context: MessageContext = {
        ...(hash === undefined ? {} : { contactIdentifier: hash }),
        useCase: stream,
        ...withoutNulls({ campaignId, subscriptionGroupId }),
      };
      const data = JSON.stringify({ ...context, ...fields, suppressed: hash !== undefined });
      insertOther(tables, { accountId, domainId }, 'email_complained', data);
    },
  };
}

export type Recorder = ReturnType<typeof createRecorder>;

/** Bounds the unit of work: a domain can have a million queued messages. */
const DROP_BATCH_SIZE = 1000;

/**
 * Drops up to `DROP_BATCH_SIZE` queued messages of a domain that is being deleted, in the same unit of work, and returns
 * their number. Delivery drops the others when they are due, because their domain is missing. Messages with a lease are
 * being sent and are not dropped.
 */
export function dropQueued(recorder: Recorder, tables: Tables, domainId: string): number {
  let dropped = 0;
  for (const seq of tables.queue.ofDomain(domainId, DROP_BATCH_SIZE)) {
    const message = tables.messages.bySeq(seq);
    if (message === null || tables.queue.get(seq)?.lease !== null) continue;
    const event = { kind: 'email_failed', fields: { reason: 'domain_deleted' } } as const;
    if (recorder.message(tables, message, event)) dropped++;
  }
  return dropped;
}

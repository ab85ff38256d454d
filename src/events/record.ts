import type { Clock } from '../core/clock.ts';
import type { Ids } from '../core/ids.ts';
import { type Refusal, refuse } from '../core/refusal.ts';
import type { DomainRow } from '../store/domains/domains.ts';
import type { NewEvent } from '../store/messages/events.ts';
import type { MessageRow } from '../store/messages/messages.ts';
import type { Tables } from '../store/tables.ts';
import { countEvent, isCancellation } from './campaign-counts.ts';
import {
  type BounceFacts,
  type SuppressionEffect,
  suppressAfterBounce,
  suppressAfterComplaint,
} from './effects.ts';
import { type DomainEventKind, type MessageEventKind, move } from './lifecycle.ts';

/**
 * The only door through which a message changes state. Whatever happens to a message is told here, inside a
 * unit of work: the new state, the event, and what follows from it (suppression, leaving the queue, the
 * webhooks to be told) are one transaction, or nothing.
 */
export interface Recorder {
  /**
   * Records what happened to a message; `data` are the fields of this kind. Returns false, and changes
   * nothing, when the message is in a state in which this cannot happen.
   */
  message(tables: Tables, message: MessageRow, kind: MessageEventKind, data: EventData): boolean;
  /**
   * A message that was taken to be sent, and that no worker has begun, waits again: it was not attempted, so it
   * is `queued` as before its first attempt, `deferred` after one. There is no event.
   */
  returned(tables: Tables, message: MessageRow): void;
  /**
   * Inserts an event, for a unit of work that returns the refusal and so leaves no trace: throws when events
   * cannot be recorded.
   */
  tryInsert(tables: Tables): Refusal;
  /** Records what happened to a domain. */
  domain(tables: Tables, domain: DomainRow, kind: DomainEventKind, data: Record<string, unknown>): void;
  /** A refused send: there is no message, but its account is told. */
  refusedSend(tables: Tables, refused: WithoutMessage): void;
  /** Somebody opted out in a way that names no message, or of one that was purged. */
  optedOut(tables: Tables, person: WithoutMessage): void;
  /** Somebody complained about a message that was purged. */
  complained(tables: Tables, person: WithoutMessage): void;
}

/** Fields of one kind of event; a bounce carries what decides about suppression beside them. */
export interface EventData {
  fields?: Record<string, unknown>;
  bounce?: BounceFacts;
  /** It is known from a report that came in by mail: the moves of REPORTED hold. */
  reported?: boolean;
}

export interface WithoutMessage {
  accountId: string;
  domainId: string | null;
  fields: Record<string, unknown>;
}

/** Told, in the same unit of work, when somebody was suppressed or a suppression was lifted. */
export type OnSuppressionChange = (tables: Tables, accountId: string, recipientHash: string) => void;

export interface RecorderSettings {
  clock: Clock;
  ids: Ids;
  onSuppressionChange?: OnSuppressionChange;
  /** A webhook has something to be told, once the unit of work is committed. */
  onWebhookDue?: (webhook: number) => void;
}

export function createRecorder(settings: RecorderSettings): Recorder {
  const { clock, ids, onSuppressionChange, onWebhookDue } = settings;

  /** Stores an event, and that the webhooks which take its kind are to be told. */
  function keep(tables: Tables, event: Omit<NewEvent, 'event_id'>): void {
    const eventSeq = tables.events.insert({ event_id: ids.make('evt'), ...event });
    for (const webhook of tables.webhooks.subscribed(event.account_id, event.kind)) {
      tables.webhookDeliveries.insert({ webhook, eventSeq, deliveryId: ids.make('whd'), at: event.at });
      onWebhookDue?.(webhook);
    }
  }

  function withoutMessage(
    tables: Tables,
    kind: MessageEventKind,
    { accountId, domainId, fields }: WithoutMessage,
  ): void {
    keep(tables, {
      account_id: accountId,
      kind,
      at: clock.now(),
      message_seq: null,
      domain_id: domainId,
      data: JSON.stringify(fields),
    });
  }

  function effects(
    tables: Tables,
    message: MessageRow,
    kind: MessageEventKind,
    data: EventData,
    at: number,
  ): SuppressionEffect | null {
    // Simulated mail counts in no statistics and suppresses nobody.
    if (message.simulated === 1) return null;
    if (kind === 'email_bounced' && data.bounce) return suppressAfterBounce(tables, message, data.bounce, at);
    if (kind === 'email_complained') return suppressAfterComplaint(tables, message, data.fields ?? {}, at);
    return null;
  }

  return {
    message: (tables, message, kind, data) => {
      const moved = move(message.status, kind, data.reported);
      if (moved === null) return false;
      const next = isCancellation(kind, data.fields ?? {}) ? { ...moved, to: 'cancelled' as const } : moved;
      const at = clock.now();
      const firstSent = kind === 'email_sent' && message.sent_at === null;
      tables.messages.setState(message.seq, next.to, at, firstSent ? at : null, next.final ? at : null);
      if (next.final) tables.queue.remove(message.seq);
      // Taken again after a restart or a deferral: the state moves, but it was sent only once.
      if (kind === 'email_sent' && !firstSent) return true;
      const effect = effects(tables, message, kind, data, at);
      if (effect?.suppressed === true)
        onSuppressionChange?.(tables, message.account_id, message.recipient_hash);
      countEvent(tables, message, kind, data.fields ?? {}, at);
      keep(tables, {
        account_id: message.account_id,
        kind,
        at,
        message_seq: message.seq,
        domain_id: null,
        data: JSON.stringify(
          effect === null ? (data.fields ?? {}) : { ...data.fields, suppressed: effect.suppressed },
        ),
      });
      return true;
    },
    returned: (tables, message) => {
      if (message.status !== 'sending') return;
      const status = message.attempts === 0 ? 'queued' : 'deferred';
      tables.messages.setState(message.seq, status, clock.now(), null, null);
    },
    tryInsert: (tables) => {
      const at = clock.now();
      const event = { event_id: ids.make('evt'), account_id: '', kind: 'email_sent', at, data: '{}' };
      tables.events.insert({ ...event, message_seq: null, domain_id: null });
      return refuse('UNAVAILABLE', 'only tried');
    },
    domain: (tables, domain, kind, data) => {
      keep(tables, {
        account_id: domain.account_id,
        kind,
        at: clock.now(),
        message_seq: null,
        domain_id: domain.domain_id,
        data: JSON.stringify({ domain: domain.name, ...data }),
      });
    },
    refusedSend: (tables, refused) => withoutMessage(tables, 'email_suppressed', refused),
    optedOut: (tables, person) => withoutMessage(tables, 'email_unsubscribed', person),
    complained: (tables, person) => withoutMessage(tables, 'email_complained', person),
  };
}

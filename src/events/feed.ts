import { iso } from '../core/clock.ts';
import { withoutNulls } from '../core/without-nulls.ts';
import type { EventRow } from '../store/messages/events.ts';
import { readLabels } from '../store/messages/labels.ts';
import type { EventFields, EventKind } from './event-types.ts';
import type { MessageContext } from './record.ts';

/** An event as the API presents it: in the feed, in the timeline of a message, in the call of a webhook. */
export type FeedEvent = {
  [Kind in EventKind]: EventIdentity & { event: Kind } & MessageContext &
    // `email_sent` has no fields.
    (EventFields[Kind] extends Record<string, never> ? unknown : EventFields[Kind]);
}[EventKind];

interface EventIdentity {
  eventId: string;
  timestamp: string;
  accountId: string;
  /** False: the event is about mail that is simulated. */
  livemode: boolean;
  /**
   * Equal to `messageId`. Both are null for an event about a recipient without a message, and absent for one of a domain, and of
   * received mail.
   */
  emailId?: string | null;
  messageId?: string | null;
  domainId?: string;
}

/** Presents common fields first, then those of the kind; fields without a value are omitted. */
export function presentEvent(row: EventRow): FeedEvent {
  const own: Record<string, unknown> = JSON.parse(row.data);
  const event = {
    eventId: row.event_id,
    event: row.kind,
    timestamp: iso(row.at),
    accountId: row.account_id,
    livemode: row.simulated !== 1,
    ...(row.kind.startsWith('email_') && row.kind !== 'email_received'
      ? { emailId: row.message_id, messageId: row.message_id }
      : {}),
    ...(row.message_id === null
      ? {}
      : {
          ...withoutNulls({
            jobId: row.job_id,
            campaignId: row.campaign_id,
            subscriptionGroupId: row.subscription_group_id,
            useCase: row.use_case,
            from: row.from_address,
            recipient: row.recipient,
            contactIdentifier: row.recipient_hash,
            subject: row.subject,
          }),
          ...readLabels(row.labels),
        }),
    ...withoutNulls({ domainId: row.domain_id }),
    ...own,
  };
  // Sound: the recorder stores a kind together with the fields of that kind only.
  return event as FeedEvent;
}

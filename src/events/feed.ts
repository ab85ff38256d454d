import { iso } from '../core/clock.ts';
import type { EventRow } from '../store/messages/events.ts';

/** An event as callers read it: in the feed, in a message's timeline, in a webhook. */
export interface PublicEvent {
  eventId: string;
  event: string;
  timestamp: string;
  accountId: string;
  [field: string]: unknown;
}

/** Common fields first, then those of the kind; fields that have no value are left out. */
export function publicEvent(row: EventRow): PublicEvent {
  const own: Record<string, unknown> = JSON.parse(row.data);
  return {
    eventId: row.event_id,
    event: row.kind,
    timestamp: iso(row.at),
    accountId: row.account_id,
    ...(row.message_id === null
      ? {}
      : {
          emailId: row.message_id,
          messageId: row.message_id,
          ...present({
            jobId: row.job_id,
            campaignId: row.campaign_id,
            subscriptionGroupId: row.subscription_group_id,
            useCase: row.use_case,
            from: row.from_address,
            recipient: row.recipient,
            contactIdentifier: row.recipient_hash,
            subject: row.subject,
          }),
        }),
    ...present({ domainId: row.domain_id }),
    ...own,
  };
}

/** The entries that are not null. */
function present(fields: Record<string, string | null>): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(fields)) if (value !== null) kept[name] = value;
  return kept;
}

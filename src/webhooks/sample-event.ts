import type { Clock } from '../core/clock.ts';
import type { Ids } from '../core/ids.ts';
import { EVENT_TYPES, type EventKind, isMessageEventKind } from '../events/event-types.ts';
import { emailIdentifier } from '../mail/identifier.ts';
import type { EventRow } from '../store/messages/events.ts';

const NO_MESSAGE = {
  message_id: null,
  job_id: null,
  campaign_id: null,
  subscription_group_id: null,
  use_case: null,
  from_address: null,
  recipient: null,
  recipient_hash: null,
  subject: null,
  // So that `livemode` is false, as for simulated mail.
  simulated: 1,
} as const;

const MESSAGE = {
  use_case: 'tx',
  from_address: 'sender@example.com',
  recipient: 'recipient@example.com',
  recipient_hash: emailIdentifier('recipient@example.com'),
  subject: 'A test of this webhook',
} as const;

/** An event for a test call: new ids, the current time, and the example fields of its kind. It is not stored. */
export function sampleEvent(
  kind: EventKind,
  accountId: string,
  { clock, ids }: { clock: Clock; ids: Ids },
): EventRow {
  return {
    seq: 0,
    event_id: ids.make('evt'),
    account_id: accountId,
    kind,
    at: clock.now(),
    message_seq: null,
    domain_id: ids.make('domain'),
    data: JSON.stringify(EVENT_TYPES[kind].example),
    ...NO_MESSAGE,
    ...(isMessageEventKind(kind) ? { ...MESSAGE, message_id: ids.make('msg') } : {}),
  };
}

import { type FeedEvent, presentEvent } from '../events/feed.ts';
import type { EventRow } from '../store/messages/events.ts';

/** The body of a call about one event: the same bytes for every attempt. */
export interface WebhookPayload {
  id: string;
  type: string;
  created: string;
  timestamp: string;
  /** False for simulated mail and test calls. */
  livemode: boolean;
  data: { object: FeedEvent & { to?: string[] } };
}

export function webhookPayload(event: EventRow): WebhookPayload {
  const object = presentEvent(event);
  const { recipient } = object;
  return {
    id: object.eventId,
    type: object.event,
    created: object.timestamp,
    timestamp: object.timestamp,
    livemode: event.simulated !== 1,
    data: { object: recipient !== undefined ? { ...object, to: [recipient] } : object },
  };
}

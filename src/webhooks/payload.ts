import { publicEvent } from '../events/feed.ts';
import type { EventRow } from '../store/messages/events.ts';

/** What a webhook is told of an event: the same bytes on every try. */
export interface WebhookPayload {
  id: string;
  type: string;
  created: string;
  timestamp: string;
  /** False for what happened to nobody: simulated mail and tests. */
  livemode: boolean;
  data: { object: Record<string, unknown> };
}

export function webhookPayload(event: EventRow): WebhookPayload {
  const object = publicEvent(event);
  const { recipient } = object;
  return {
    id: object.eventId,
    type: object.event,
    created: object.timestamp,
    timestamp: object.timestamp,
    livemode: event.simulated !== 1,
    data: { object: typeof recipient === 'string' ? { ...object, to: [recipient] } : object },
  };
}

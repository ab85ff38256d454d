import { mac } from '../core/seal.ts';
import { type FeedEvent, presentEvent } from '../events/feed.ts';
import type { EventRow } from '../store/messages/events.ts';

/** The body of a call (Standard Webhooks): the same bytes for every attempt. */
export interface WebhookPayload {
  id: string;
  type: string;
  created: string;
  timestamp: string;
  /** Repeats that of the event. False for simulated mail and test calls. */
  livemode: boolean;
  /** `to`: the recipient of the event, where it has one. */
  data: { object: FeedEvent | (FeedEvent & { to: string[] }) };
}

/** Pure. `id` is the id of the event, not of the delivery; `created` and `timestamp` are both its time. */
export function webhookPayload(event: EventRow): WebhookPayload {
  const object = presentEvent(event);
  const { recipient } = object;
  return {
    id: object.eventId,
    type: object.event,
    created: object.timestamp,
    timestamp: object.timestamp,
    livemode: object.livemode,
    data: { object: recipient === undefined ? object : { ...object, to: [recipient] } },
  };
}

export interface SignedCall {
  /** The id of the event: equal for every attempt, so that receivers can detect repetitions. */
  id: string;
  body: string;
  /** Time of the attempt, epoch ms; receivers reject old ones. */
  now: number;
}

/** The headers of Standard Webhooks, with one signature for each key, so that a receiver can change its secret. */
export function signatureHeaders(
  keys: readonly Buffer[],
  { id, body, now }: SignedCall,
): Record<string, string> {
  const timestamp = String(Math.floor(now / 1000));
  const signatures = keys.map((key) => `v1,${mac(key, `${id}.${timestamp}.${body}`).toString('base64')}`);
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signatures.join(' '),
  };
}

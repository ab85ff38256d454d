import { mac } from '../core/seal.ts';
import { type FeedEvent, presentEvent } from '../events/feed.ts';
import type { EventRow } from '../store/messages/events.ts';
import type { Tables } from '../store/tables.ts';
import { mailgunSignature, providerEvent, providerHeaders, type WebhookFormat } from './formats.ts';

/** The body of a call in our own format (Standard Webhooks): the same bytes for every attempt. */
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

/** The body of a call in the format of the webhook, without what signs it; null: the format has no name for the event. */
export function payloadIn(format: WebhookFormat, tables: Tables, event: EventRow): object | null {
  if (format === 'postrider') return webhookPayload(event);
  return providerEvent(format, presentEvent(event), sentId(tables, event));
}

/** The id that the send of the event's message returned; members of a campaign have their own. Null: there is no message. */
function sentId({ messages }: Tables, event: EventRow): string | null {
  const { message_seq: seq, campaign_id: campaignId, job_id: jobId, message_id: own } = event;
  return seq === null || campaignId !== null ? own : (messages.firstOfSend(seq, jobId !== null) ?? own);
}

interface CallParts {
  format: WebhookFormat;
  /** The id of the event. */
  id: string;
  payload: object;
  /** Those of the webhook, the current one first. */
  keys: readonly Buffer[];
  /** New for each call. */
  token: Buffer;
  /** Epoch ms. */
  now: number;
}

/** Bytes of a token. */
export const TOKEN_BYTES = 25;

/** A call with the signatures of Standard Webhooks and of the provider, which has one signature only: of the current key. */
export function signedCall({ format, id, payload, keys, token, now }: CallParts): {
  body: string;
  headers: Record<string, string>;
} {
  const [key] = keys;
  const signature = format === 'mailgun' && key !== undefined ? mailgunSignature(key, token, now) : undefined;
  const body = JSON.stringify(signature === undefined ? payload : { signature, ...payload });
  const standard = signatureHeaders(keys, { id, body, now });
  if (format === 'postrider' || key === undefined) return { body, headers: standard };
  return { body, headers: { ...standard, ...providerHeaders(format, { key, standard, body }) } };
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

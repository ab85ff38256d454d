import { createHmac, timingSafeEqual } from 'node:crypto';
import type { DataOf } from './operations.ts';

const DEFAULT_TOLERANCE_SECONDS = 300;
/** After a rotation there are two; more are not from Postrider. */
const MAX_SIGNATURES = 8;

/** A call of a webhook. */
export interface WebhookCall {
  /** Of the event, the same whenever it is sent again: store it to process each event once. */
  id: string;
  /** Such as `email_delivered`. */
  type: string;
  /** Time of the event, ISO 8601. */
  timestamp: string;
  /** False: the event is about mail that was simulated, or the call is a test. */
  livemode: boolean;
  data: { object: DataOf<'get', '/web-setup/events'>['events'][number] };
}

export interface VerifyOptions {
  /** Accepted difference between the time of the call and now. Default: 300. */
  toleranceSeconds?: number;
  /** Epoch milliseconds. Default: now. */
  now?: number;
}

/** A call that is not genuine, or too old. */
export class WebhookError extends Error {
  override readonly name = 'WebhookError';
}

/**
 * Returns the call if its signature (Standard Webhooks, HMAC-SHA256) is genuine and its time is near, and throws a
 * WebhookError otherwise. `secret`: of the webhook, with or without `whsec_`. `body`: exactly as received, not parsed and
 * serialized again.
 */
export function verifyWebhook(
  secret: string,
  headers: Headers | Readonly<Record<string, string | readonly string[] | undefined>>,
  body: string | Uint8Array,
  { toleranceSeconds = DEFAULT_TOLERANCE_SECONDS, now = Date.now() }: VerifyOptions = {},
): WebhookCall {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  if (key.length === 0) throw new WebhookError('The secret is empty');
  const id = headerOf(headers, 'webhook-id');
  const timestamp = headerOf(headers, 'webhook-timestamp');
  const signatures = headerOf(headers, 'webhook-signature').split(' ');
  if (!/^\d{1,15}$/.test(timestamp)) throw new WebhookError('The header webhook-timestamp is not a time');
  if (!(Math.abs(now / 1000 - Number(timestamp)) <= toleranceSeconds))
    throw new WebhookError('The time of the call is too far from now');
  const expected = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest();
  const isGenuine = signatures.slice(0, MAX_SIGNATURES).some((signature) => {
    const [version, value = ''] = signature.split(',');
    const given = Buffer.from(value, 'base64');
    return version === 'v1' && given.length === expected.length && timingSafeEqual(given, expected);
  });
  if (!isGenuine) throw new WebhookError('No signature is genuine');
  // The daemon that has the secret wrote it.
  return JSON.parse(Buffer.from(body).toString('utf8')) as WebhookCall;
}

function headerOf(headers: Parameters<typeof verifyWebhook>[1], name: string): string {
  const value = headers instanceof Headers ? headers.get(name) : headers[name];
  if (typeof value !== 'string' || value === '') throw new WebhookError(`The header ${name} is missing`);
  return value;
}

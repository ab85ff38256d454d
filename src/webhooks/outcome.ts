import { DAY, HOUR, MINUTE, SECOND } from '../core/clock.ts';
import type { Random } from '../core/random.ts';
import { isErased } from '../events/erased.ts';
import type { EventRow } from '../store/messages/events.ts';
import type { WebhookDeliveryRow } from '../store/webhook-deliveries.ts';
import type { CallResult } from './call.ts';

/** The effect of a call on the delivery, on the pace of the endpoint and on the webhook. */
export interface CallOutcome {
  row: WebhookDeliveryRow;
  succeeded: boolean;
  /** The endpoint replied that it no longer exists (410). */
  gone: boolean;
  /** The endpoint replied that it is overloaded, or did not respond in time. */
  overloaded: boolean;
  retryAfterMs: number | null;
}

const GONE = 410;
const OVERLOADED: ReadonlySet<number> = new Set([429, 502, 504]);
const MAX_ERROR_LENGTH = 300;

/**
 * The row of a delivery after a call, and what the call means for the endpoint. `retryAfterMs`: the wait that the endpoint
 * requested, ms; null after a success, and when it requested none.
 */
export function outcomeOf(
  row: WebhookDeliveryRow,
  result: CallResult,
  { now, random }: { now: number; random: Random },
): CallOutcome {
  const response = result.kind === 'response' ? result : null;
  const attempted = {
    ...row,
    attempts: row.attempts + 1,
    attempted_at: now,
    response_code: response?.status ?? null,
    response_body: response?.body ?? null,
    error: errorOf(result),
  };
  if (attempted.error === null) {
    return {
      row: { ...attempted, state: 'succeeded', failures: 0 },
      succeeded: true,
      gone: false,
      overloaded: false,
      retryAfterMs: null,
    };
  }
  const status = response?.status ?? 0;
  const requestedMs = response === null ? null : retryAfterMs(response.retryAfter, now);
  const failures = row.failures + 1;
  const waitMs = status === GONE ? null : waitAfter(failures, requestedMs, random);
  return {
    row: {
      ...attempted,
      failures,
      ...(waitMs === null
        ? { state: 'failed' as const }
        : { state: 'waiting' as const, due_at: now + waitMs }),
    },
    succeeded: false,
    gone: status === GONE,
    overloaded: OVERLOADED.has(status) || (result.kind === 'no-response' && result.timedOut === true),
    retryAfterMs: requestedMs,
  };
}

/**
 * The row as it may be stored: a response can contain the name of the recipient, who may have been erased during the
 * call. `sent` is the event that was sent, `current` the stored one, null when it was deleted.
 */
export function withoutErased(
  row: WebhookDeliveryRow,
  sent: EventRow,
  current: EventRow | null,
): WebhookDeliveryRow {
  const isUnchanged = current !== null && current.recipient === sent.recipient && current.data === sent.data;
  const hasPerson =
    isUnchanged && (current.recipient === null || !isErased({ recipient: current.recipient }));
  return hasPerson ? row : { ...row, response_body: null };
}

/** Why a call failed, as a clause; null: it succeeded with a 2xx status. */
export function errorOf(result: CallResult): string | null {
  if (result.kind === 'no-response') return result.reason.slice(0, MAX_ERROR_LENGTH);
  const { status } = result;
  if (status >= 200 && status < 300) return null;
  return status >= 300 && status < 400
    ? `the endpoint responded with ${status}: redirects are not followed`
    : `the endpoint responded with ${status}`;
}

/** Waits between attempts: three days in total, so that an endpoint that was down for a day receives everything. */
const RETRY_WAITS_MS: readonly number[] = [
  5 * SECOND,
  30 * SECOND,
  2 * MINUTE,
  10 * MINUTE,
  30 * MINUTE,
  2 * HOUR,
  5 * HOUR,
  10 * HOUR,
  14 * HOUR,
  20 * HOUR,
  24 * HOUR,
];

/** ±20 %, so that deliveries that failed together are not retried together. */
const JITTER = 0.2;
/** The longest wait that a `Retry-After` can request. */
const MAX_RETRY_AFTER_MS = DAY;

/** Ms to wait after this number of failures, at least `retryAfterMs`; null: that was the last attempt. */
export function waitAfter(failures: number, retryAfterMs: number | null, random: Random): number | null {
  const waitMs = RETRY_WAITS_MS[failures - 1];
  if (waitMs === undefined) return null;
  const factor = 1 - JITTER + (2 * JITTER * random.below(1_000_001)) / 1_000_000;
  return Math.max(Math.round(waitMs * factor), retryAfterMs ?? 0);
}

/** Ms of a `Retry-After` header (RFC 9110 §10.2.3: seconds or a date), a day at most; null: absent or invalid. */
export function retryAfterMs(header: string | undefined, now: number): number | null {
  const text = header?.trim() ?? '';
  const ms = /^\d{1,9}$/.test(text)
    ? Number(text) * SECOND
    : HTTP_DATE.test(text)
      ? Date.parse(text) - now
      : Number.NaN;
  return Number.isNaN(ms) ? null : Math.min(Math.max(ms, 0), MAX_RETRY_AFTER_MS);
}

/** IMF-fixdate (RFC 9110 §5.6.7); the obsolete forms are not supported. */
const HTTP_DATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

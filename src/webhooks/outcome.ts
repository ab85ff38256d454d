import type { Random } from '../core/random.ts';
import { isErased } from '../events/effects.ts';
import type { EventRow } from '../store/messages/events.ts';
import type { WebhookDeliveryRow } from '../store/webhook-deliveries.ts';
import type { CallResult } from './call.ts';
import { retryAfterMs, waitAfter } from './schedule.ts';

/** What follows from a call: for the delivery, for the endpoint's pace, for the webhook itself. */
export interface DeliveryOutcome {
  row: WebhookDeliveryRow;
  succeeded: boolean;
  /** The endpoint says that it is there no more. */
  gone: boolean;
  /** The endpoint says that it has too much to do. */
  slow: boolean;
  retryAfterMs: number | null;
}

const GONE = 410;
const SLOW: ReadonlySet<number> = new Set([429, 502, 504]);
const LONGEST_ERROR = 300;

export function outcomeOf(
  row: WebhookDeliveryRow,
  result: CallResult,
  { now, random }: { now: number; random: Random },
): DeliveryOutcome {
  const attempted = {
    ...row,
    attempts: row.attempts + 1,
    attempted_at: now,
    response_code: result.kind === 'answered' ? result.status : null,
    response_body: result.kind === 'answered' ? result.body : null,
    error: errorOf(result),
  };
  if (attempted.error === null) {
    return {
      row: { ...attempted, state: 'succeeded', failures: 0 },
      succeeded: true,
      gone: false,
      slow: false,
      retryAfterMs: null,
    };
  }
  const status = result.kind === 'answered' ? result.status : 0;
  const asked = result.kind === 'answered' ? retryAfterMs(result.retryAfter, now) : null;
  const failures = row.failures + 1;
  const wait = status === GONE ? null : waitAfter(failures, asked, random);
  return {
    row: {
      ...attempted,
      failures,
      ...(wait === null ? { state: 'failed' as const } : { state: 'waiting' as const, due_at: now + wait }),
    },
    succeeded: false,
    gone: status === GONE,
    slow: SLOW.has(status),
    retryAfterMs: asked,
  };
}

/**
 * The row as it may be kept: an endpoint may answer with the name of the person whom it was told of, and that
 * person may have been erased while it did. `told` is the event as it was told, `now` as it is, null when it
 * is gone.
 */
export function withoutErased(
  row: WebhookDeliveryRow,
  told: EventRow,
  now: EventRow | null,
): WebhookDeliveryRow {
  const isTheSame = now !== null && now.recipient === told.recipient && now.data === told.data;
  const names = isTheSame && (now.recipient === null || !isErased({ recipient: now.recipient }));
  return names ? row : { ...row, response_body: null };
}

/** What was wrong, in a sentence; null: nothing. Only 2xx says that an event has arrived. */
export function errorOf(result: CallResult): string | null {
  if (result.kind === 'unanswered') return result.why.slice(0, LONGEST_ERROR);
  const { status } = result;
  if (status >= 200 && status < 300) return null;
  return status >= 300 && status < 400
    ? `the endpoint answered ${status}: redirects are not followed`
    : `the endpoint answered ${status}`;
}

import { DAY, HOUR, MINUTE, SECOND } from '../core/clock.ts';
import type { Random } from '../core/random.ts';

/** Waits between attempts: three days in total, so that an endpoint that was down for a day receives everything. */
export const RETRY_WAITS_MS: readonly number[] = [
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

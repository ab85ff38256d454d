import { DAY, HOUR, MINUTE, SECOND } from '../core/clock.ts';
import type { Random } from '../core/random.ts';

/** When a webhook is tried again. Three days in all: an endpoint that was down for a day gets everything. */
export const WAITS: readonly number[] = [
  5 * SECOND,
  5 * MINUTE,
  30 * MINUTE,
  2 * HOUR,
  5 * HOUR,
  10 * HOUR,
  14 * HOUR,
  20 * HOUR,
  24 * HOUR,
];

/** ±20 %: what failed together need not come back together. */
const JITTER = 0.2;
/** What an endpoint may ask for; more would be a way to be forgotten. */
const LONGEST_REQUEST = DAY;

/**
 * Ms to wait after so many failures (1 after the first), null when it was the last try. An endpoint that
 * asked for more time gets it.
 */
export function waitAfter(failures: number, retryAfterMs: number | null, random: Random): number | null {
  const wait = WAITS[failures - 1];
  if (wait === undefined) return null;
  const factor = 1 - JITTER + (2 * JITTER * random.below(1_000_001)) / 1_000_000;
  return Math.max(Math.round(wait * factor), retryAfterMs ?? 0);
}

/** Ms that a `Retry-After` asks for (RFC 9110 §10.2.3: seconds or a date), a day at most; null: nothing sensible. */
export function retryAfterMs(header: string | undefined, now: number): number | null {
  const text = header?.trim() ?? '';
  const ms = /^\d{1,9}$/.test(text)
    ? Number(text) * SECOND
    : HTTP_DATE.test(text)
      ? Date.parse(text) - now
      : Number.NaN;
  return Number.isNaN(ms) ? null : Math.min(Math.max(ms, 0), LONGEST_REQUEST);
}

/** IMF-fixdate (RFC 9110 §5.6.7); the forms of the last century are nobody's any more. */
const HTTP_DATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

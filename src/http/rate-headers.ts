import type { RateClass } from '../accounts/rate-limits.ts';
import type { RateReading } from '../core/token-bucket.ts';

/**
 * Response header fields that state a caller's limit: those of draft-ietf-httpapi-ratelimit-headers (a policy of `q`
 * calls in `w` seconds; `r` are left, all of them again after `t` seconds) and the older X- pair.
 */
export function rateHeaders(rateClass: RateClass, reading: RateReading): Record<string, string> {
  const { burst, perSecond } = reading.rate;
  return {
    'X-RateLimit-Limit': String(burst),
    'X-RateLimit-Remaining': String(reading.remaining),
    'RateLimit-Policy': `"${rateClass}";q=${burst};w=${Math.max(1, Math.ceil(burst / perSecond))}`,
    RateLimit: `"${rateClass}";r=${reading.remaining};t=${reading.fullAfterSeconds}`,
  };
}

/** The same fields for a limit that has been reached; `seconds` until it lets a call through again. */
export function reachedHeaders(
  { name, calls, seconds }: { name: string; calls: number; seconds: number },
  retryAfter: number,
): Record<string, string> {
  return {
    'X-RateLimit-Limit': String(calls),
    'X-RateLimit-Remaining': '0',
    'RateLimit-Policy': `"${name}";q=${calls};w=${seconds}`,
    RateLimit: `"${name}";r=0;t=${retryAfter}`,
  };
}

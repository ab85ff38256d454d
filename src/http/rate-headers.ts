import type { RateClass } from '../accounts/rate-limits.ts';
import type { RateReading } from '../core/token-bucket.ts';

/**
 * Header fields about the rate limit of the caller: those of draft-ietf-httpapi-ratelimit-headers (a policy of `q`
 * requests in `w` seconds; `r` remain, all again after `t` seconds) and the older X- fields.
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

/** The same fields for a limit that is reached. `retryAfter`: seconds until the next request is allowed. */
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

import type { RateLane, RateReading } from '../accounts/rate-limits.ts';

/**
 * How a caller is told of its limit: the fields of draft-ietf-httpapi-ratelimit-headers (a policy of `q`
 * calls in `w` seconds; `r` are left, all of them again after `t` seconds) and the older X- pair.
 */
export function rateHeaders(lane: RateLane, reading: RateReading): Record<string, string> {
  const { burst, perSecond } = reading.rate;
  return {
    'X-RateLimit-Limit': String(burst),
    'X-RateLimit-Remaining': String(reading.remaining),
    'RateLimit-Policy': `"${lane}";q=${burst};w=${Math.max(1, Math.ceil(burst / perSecond))}`,
    RateLimit: `"${lane}";r=${reading.remaining};t=${reading.fullAfterSeconds}`,
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

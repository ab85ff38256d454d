import { LRUCache } from 'lru-cache';
import { type Clock, MINUTE, SECOND } from '../../core/clock.ts';
import { type Refusal, refuse } from '../../core/refusal.ts';

/** Verification by hand asks past all caches, some twenty questions each time: so often and no more. */
const MOST = 10;
const WINDOW = MINUTE;
const DOMAINS_KEPT = 10_000;

/** Counts one verification of the domain, or refuses it. */
export function createVerifyLimit(clock: Clock): (domainId: string) => Refusal | null {
  const recent = new LRUCache<string, number[]>({ max: DOMAINS_KEPT });
  return (domainId) => {
    const now = clock.now();
    const times = (recent.get(domainId) ?? []).filter((at) => at > now - WINDOW);
    const [oldest] = times;
    if (oldest !== undefined && times.length >= MOST) {
      const retryAfter = Math.max(1, Math.ceil((oldest + WINDOW - now) / 1000));
      return refuse(
        'RATE_LIMITED',
        `a domain may be verified ${MOST} times a minute; try again in ${retryAfter} s`,
        { retryAfter, limit: { name: 'verification', calls: MOST, seconds: WINDOW / SECOND } },
      );
    }
    recent.set(domainId, [...times, now]);
    return null;
  };
}

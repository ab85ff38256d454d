import type { Config } from '../config/schema.ts';
import type { Random } from '../core/random.ts';
import type { Classification } from '../mail/classify/classify.ts';

/**
 * When a deferred message is tried again: the wait that the reply names, else the schedule (first wait,
 * then longer by the factor up to the longest), spread by 10 % so that what failed together does not come
 * back together.
 */
export type RetrySchedule = Config['delivery']['retry'];

const SPREAD = 0.1;

/** Milliseconds to wait after attempt number `attempts` (1 = the first) was deferred. */
export function retryWait(
  schedule: RetrySchedule,
  attempts: number,
  verdict: Pick<Classification, 'retryAfterMs' | 'greylisted'>,
  random: Random,
): number {
  if (verdict.retryAfterMs !== null) return spread(verdict.retryAfterMs, 0, random);
  const first = verdict.greylisted && attempts === 1 ? schedule.greylisted : schedule.first;
  // The exponent is bounded so that a long life cannot overflow.
  const grown = first * schedule.factor ** Math.min(attempts - 1, 64);
  return spread(Math.min(grown, schedule.max), SPREAD, random);
}

/** `ms` ± `share`; with no share, up to a tenth later and never earlier (the reply named a minimum). */
function spread(ms: number, share: number, random: Random): number {
  const unit = random.below(10_001) / 10_000;
  return Math.round(share === 0 ? ms * (1 + unit * SPREAD) : ms * (1 - share + 2 * share * unit));
}

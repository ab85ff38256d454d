import { DAY } from '../core/clock.ts';

/**
 * How far a domain is on the way to an enforced DMARC policy: two weeks of reports without unauthenticated mail
 * before p=none becomes p=quarantine, and again before p=reject.
 */
export interface DmarcHistory {
  /** Begin of the first report, epoch ms; null without reports. */
  firstAt: number | null;
  /** End of the last report with mail that failed both DKIM and SPF; null when there is none. */
  lastFailureAt: number | null;
}

const CLEAN_PERIOD = 14 * DAY;

/** When the policy may be raised, in a sentence. */
export function dmarcProgress({ firstAt, lastFailureAt }: DmarcHistory, now: number): string {
  if (firstAt === null) return 'No DMARC reports yet: they arrive a day after the first mail.';
  const cleanSince = Math.max(firstAt, lastFailureAt ?? firstAt);
  const raiseAt = cleanSince + CLEAN_PERIOD;
  const since = `DMARC reports show no unauthenticated mail since ${day(cleanSince)}`;
  return raiseAt <= now
    ? `${since}: a p=none policy may be raised to p=quarantine, and p=quarantine to p=reject.`
    : `${since}: raise the policy after ${day(raiseAt)} if that stays so.`;
}

function day(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}

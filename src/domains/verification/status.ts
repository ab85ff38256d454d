import { DAY, HOUR, MINUTE } from '../../core/clock.ts';
import type { DomainEventKind } from '../../events/event-types.ts';
import type { DomainRow, DomainStatus } from '../../store/domains/domains.ts';
import { REQUIRED_CHECKS } from './checks.ts';

/* The status of a domain as a table, and the schedule of its checks. Pure functions. */

/** How long a verified domain may fail before mail from it stops. */
export const FAILURE_GRACE_MS = 72 * HOUR;

/**
 * The overall result of a round of checks. passing: all required checks pass. failing: at least one does not. overdue:
 * failing for FAILURE_GRACE_MS, and confirmed by an answer of this round, so that a failure of our own resolver never stops
 * mail.
 */
export type Round = 'passing' | 'failing' | 'overdue';

interface Transition {
  to: DomainStatus;
  event: DomainEventKind | null;
}

export const TRANSITIONS: Record<DomainStatus, Record<Round, Transition>> = {
  PENDING: {
    passing: { to: 'SUCCESS', event: 'domain_verified' },
    failing: { to: 'PENDING', event: null },
    overdue: { to: 'PENDING', event: null },
  },
  SUCCESS: {
    passing: { to: 'SUCCESS', event: null },
    failing: { to: 'TEMPORARY_FAILURE', event: 'domain_failing' },
    overdue: { to: 'TEMPORARY_FAILURE', event: 'domain_failing' },
  },
  TEMPORARY_FAILURE: {
    passing: { to: 'SUCCESS', event: 'domain_verified' },
    failing: { to: 'TEMPORARY_FAILURE', event: null },
    overdue: { to: 'FAILED', event: 'domain_failed' },
  },
  FAILED: {
    passing: { to: 'SUCCESS', event: 'domain_verified' },
    failing: { to: 'FAILED', event: null },
    overdue: { to: 'FAILED', event: null },
  },
};

/** `isConfirmed`: DNS answered for at least one of the failing required checks in this round. */
export function roundOf(row: DomainRow, isConfirmed: boolean, now: number): Round {
  if (REQUIRED_CHECKS.every(({ column }) => row[column] === 1)) return 'passing';
  const isOverdue = row.failing_since !== null && now - row.failing_since >= FAILURE_GRACE_MS;
  return isOverdue && isConfirmed ? 'overdue' : 'failing';
}

/** Whether mail may be sent from a domain in this status. */
export function maySend(status: DomainStatus): boolean {
  return status === 'SUCCESS' || status === 'TEMPORARY_FAILURE';
}

interface CheckInterval {
  firstMs: number;
  /** Each interval is twice the previous one, up to this. */
  maxMs: number;
}

const INTERVALS: Record<DomainStatus, CheckInterval> = {
  PENDING: { firstMs: MINUTE, maxMs: HOUR },
  SUCCESS: { firstMs: DAY, maxMs: DAY },
  // Short, so that a correction takes effect soon.
  TEMPORARY_FAILURE: { firstMs: 10 * MINUTE, maxMs: HOUR },
  FAILED: { firstMs: HOUR, maxMs: DAY },
};

/** After this time without its records a domain is checked daily. */
const ABANDONED_MS = 14 * DAY;

export interface RoundDetails {
  /** DNS gave no answer to at least one check. */
  hasUnknown: boolean;
  /** When the pending DKIM key was created; null: no key is pending. */
  pendingKeySince: number | null;
}

/** When the next scheduled check is due, epoch ms; `row` has its new status and check count. */
export function nextCheckAt(row: DomainRow, details: RoundDetails, now: number): number {
  const { firstMs, maxMs } = INTERVALS[row.status];
  const isYoung = now - row.created_at < ABANDONED_MS;
  const isAbandoned = row.status === 'PENDING' && !isYoung;
  const waits = [isAbandoned ? DAY : doubled(firstMs, maxMs, row.check_count)];
  if (details.hasUnknown && !isAbandoned) waits.push(HOUR);
  if (row.alt_status === 'PENDING' && isYoung) waits.push(HOUR);
  if (details.pendingKeySince !== null) waits.push(waitForKey(now - details.pendingKeySince));
  // The end of the grace period is checked exactly, not up to an hour later.
  if (row.status === 'TEMPORARY_FAILURE' && row.failing_since !== null) {
    const left = row.failing_since + FAILURE_GRACE_MS - now;
    if (left > 0) waits.push(left);
  }
  return now + Math.min(...waits);
}

function doubled(firstMs: number, maxMs: number, times: number): number {
  // 2^40 minutes exceed every `maxMs`; the limit keeps the number finite.
  return Math.min(firstMs * 2 ** Math.min(times, 40), maxMs);
}

/** Until the next check for a new key's record: owners publish it soon, or only after days. */
function waitForKey(age: number): number {
  if (age < 10 * MINUTE) return MINUTE;
  if (age < 2 * HOUR) return 5 * MINUTE;
  return age < ABANDONED_MS ? HOUR : DAY;
}

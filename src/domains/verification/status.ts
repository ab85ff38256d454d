import { DAY, HOUR, MINUTE } from '../../core/clock.ts';
import type { DomainEventKind } from '../../events/event-types.ts';
import type { DomainRow, DomainStatus } from '../../store/domains/domains.ts';

/**
 * The life of a domain as a table, and when it is looked at again. Pure: what the checks found comes in, the
 * next state goes out.
 */
/** A domain that was in order may be out of order this long before its sending stops. */
export const PATIENCE = 72 * HOUR;

/**
 * What a round of checks came to. passing: all that must pass passes. failing: something does not. overdue:
 * something does not pass, DNS says so just now, and it has been so for longer than PATIENCE. That DNS must
 * say so just now keeps a breakdown of our own resolver from ever stopping anybody's mail.
 */
export type Round = 'passing' | 'failing' | 'overdue';

interface Move {
  to: DomainStatus;
  event: DomainEventKind | null;
}

export const MOVES: Record<DomainStatus, Record<Round, Move>> = {
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

/** `certain`: at least one of the failing checks has an answer of just now behind it. */
export function roundOf(row: DomainRow, certain: boolean, now: number): Round {
  const flags = [row.dkim_enabled, row.spf_configured, row.dmarc_configured, row.mx_configured];
  if (flags.every((flag) => flag === 1)) return 'passing';
  const overdue = row.failing_since !== null && now - row.failing_since >= PATIENCE;
  return overdue && certain ? 'overdue' : 'failing';
}

interface Pace {
  first: number;
  /** Each wait is twice the one before, up to this. */
  most: number;
}

const PACES: Record<DomainStatus, Pace> = {
  PENDING: { first: MINUTE, most: HOUR },
  SUCCESS: { first: DAY, most: DAY },
  // Whoever mends it should not wait long for the good news.
  TEMPORARY_FAILURE: { first: 10 * MINUTE, most: HOUR },
  FAILED: { first: HOUR, most: DAY },
};

/** After this a record that was never published is looked for daily. */
const ABANDONED = 14 * DAY;

export interface Outlook {
  /** DNS did not answer to something. */
  undecided: boolean;
  /** When the key that is not seen yet was made; null: no key is awaited. */
  rotationSince: number | null;
}

/** When the next automatic check is due, epoch ms; `row` has its new status and check count. */
export function nextCheckAt(row: DomainRow, outlook: Outlook, now: number): number {
  const { first, most } = PACES[row.status];
  const young = now - row.created_at < ABANDONED;
  const abandoned = row.status === 'PENDING' && !young;
  const waits = [abandoned ? DAY : doubling(first, most, row.check_count)];
  if (outlook.undecided && !abandoned) waits.push(HOUR);
  if (row.alt_status === 'PENDING' && young) waits.push(HOUR);
  if (outlook.rotationSince !== null) waits.push(waitForKey(now - outlook.rotationSince));
  // The end of the patience is looked at when it comes, not up to an hour later.
  if (row.status === 'TEMPORARY_FAILURE' && row.failing_since !== null) {
    const left = row.failing_since + PATIENCE - now;
    if (left > 0) waits.push(left);
  }
  return now + Math.min(...waits);
}

function doubling(first: number, most: number, times: number): number {
  // 2^40 minutes is beyond every `most`; the bound keeps the number a number.
  return Math.min(first * 2 ** Math.min(times, 40), most);
}

/** A new key's record is published soon or not for days. */
function waitForKey(age: number): number {
  if (age < 10 * MINUTE) return MINUTE;
  if (age < 2 * HOUR) return 5 * MINUTE;
  return age < ABANDONED ? HOUR : DAY;
}

import { DAY, HOUR, MINUTE } from '../../core/clock.ts';
import type { DomainEventKind } from '../../events/event-types.ts';
import {
  CHECK_COLUMNS,
  type CheckFlags,
  type DomainRow,
  type DomainStatus,
} from '../../store/domains/domains.ts';
import type { CheckResult, Verdict } from './checks/check.ts';
import {
  CHECK_NAMES,
  type CheckName,
  type CheckResults,
  checkOf,
  type FlagColumn,
  REPORTED_CHECKS,
  REQUIRED_CHECKS,
  type ReportedCheck,
} from './checks.ts';

/* What follows from a round of checks: the status of a domain as a table, its report, and the next check. Pure functions. */

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

/**
 * When the next scheduled check is due, epoch ms; `row` has its new status and check count. `hasUnknown`: DNS gave no answer
 * to at least one check.
 */
export function nextCheckAt(
  row: DomainRow,
  { hasUnknown, pendingKeySince }: { hasUnknown: boolean; pendingKeySince: number | null },
  now: number,
): number {
  const { firstMs, maxMs } = INTERVALS[row.status];
  const isYoung = now - row.created_at < ABANDONED_MS;
  const isAbandoned = row.status === 'PENDING' && !isYoung;
  const waits = [isAbandoned ? DAY : doubled(firstMs, maxMs, row.check_count)];
  if (hasUnknown && !isAbandoned) waits.push(HOUR);
  if (row.alt_status === 'PENDING' && isYoung) waits.push(HOUR);
  if (pendingKeySince !== null) waits.push(waitForKey(now - pendingKeySince));
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

/** A check in the report of a verification. */
export interface CheckReport {
  check: ReportedCheck;
  passed: boolean;
  /** `unknown`: the DNS server did not answer, and `passed` is the last result. */
  result: 'ok' | 'missing' | 'wrong' | 'unknown';
  expected: string;
  found: string | null;
  hint: string;
}

interface AppliedResults {
  row: DomainRow;
  checks: CheckReport[];
  event: DomainEventKind | null;
}

interface ApplyOptions {
  now: number;
  /** When the checks began. */
  checkedAt: number;
  /** Whether the check was scheduled; only scheduled checks lengthen the interval. */
  automatic: boolean;
  /** When the pending DKIM key was created; null: no key is pending. */
  pendingKeySince: number | null;
}

/** The domain's next row, its report and its event after a round of checks. An unknown result changes no flag. */
export function applyResults(
  before: DomainRow,
  results: CheckResults,
  { now, checkedAt, automatic, pendingKeySince }: ApplyOptions,
): AppliedResults {
  const flagged = withResults(before, results);
  const isConfirmed = REQUIRED_CHECKS.some(({ name }) => results[name].verdict === 'fail');
  const { to, event } = TRANSITIONS[before.status][roundOf(flagged, isConfirmed, now)];
  const moved = to !== before.status;
  const row: DomainRow = {
    ...flagged,
    status: to,
    failing_since: to === 'TEMPORARY_FAILURE' && moved ? now : to === 'SUCCESS' ? null : before.failing_since,
    last_checked_at: checkedAt,
    check_count: moved ? 0 : before.check_count + (automatic ? 1 : 0),
  };
  if (automatic || moved) {
    const hasUnknown = REPORTED_CHECKS.some((name) => results[name].verdict === 'unknown');
    row.next_check_at = nextCheckAt(row, { hasUnknown, pendingKeySince }, now);
  }
  if (VISIBLE.some((column) => before[column] !== row[column])) row.updated_at = now;
  const checks = REPORTED_CHECKS.filter((name) => results[name].isOmitted !== true).map((name) =>
    reportCheck(name, results[name], before),
  );
  return { row, checks, event };
}

/** Columns that callers see, or that determine how mail is sent. */
const VISIBLE: readonly (keyof DomainRow)[] = [
  'status',
  ...CHECK_COLUMNS,
  'alt_status',
  'tracking_host',
  'return_path',
];

function withResults(row: DomainRow, results: CheckResults): DomainRow {
  const flags = nextFlags(row, results);
  return {
    ...row,
    ...flags,
    alt_status: flags.alt_dkim_enabled === 1 ? 'ACTIVE' : 'PENDING',
    ...Object.assign({}, ...CHECK_NAMES.map((name) => results[name].changes)),
  };
}

/** Does not compile when a column of CHECK_COLUMNS belongs to no check. */
function nextFlags(row: DomainRow, results: CheckResults): CheckFlags {
  const entries = CHECK_NAMES.flatMap((name) => {
    const { flag } = checkOf(name);
    return flag === null ? [] : [[flag.column, nextFlag(results[name].verdict, row[flag.column])]];
  });
  const flags = Object.fromEntries(entries) as Record<FlagColumn, 0 | 1>; // the columns of the table
  return flags;
}

function nextFlag(verdict: Verdict, before: 0 | 1): 0 | 1 {
  return verdict === 'unknown' ? before : verdict === 'pass' ? 1 : 0;
}

/** `before`: its last result applies when DNS gave no answer. */
function reportCheck(
  check: ReportedCheck,
  { verdict, expected, found, hint }: CheckResult,
  before: DomainRow,
): CheckReport {
  const passed = verdict === 'unknown' ? passedBefore(check, before) : verdict === 'pass';
  return { check, passed, result: resultOf(verdict, found), expected, found, hint };
}

function passedBefore(name: CheckName, row: DomainRow): boolean {
  const check = checkOf(name);
  return check.flag === null ? check.passedBefore(row) : row[check.flag.column] === 1;
}

function resultOf(verdict: Verdict, found: string | null): CheckReport['result'] {
  if (verdict === 'unknown') return 'unknown';
  if (verdict === 'pass') return 'ok';
  return found === null ? 'missing' : 'wrong';
}

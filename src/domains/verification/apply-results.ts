import type { DomainEventKind } from '../../events/event-types.ts';
import { CHECK_COLUMNS, type CheckFlags, type DomainRow } from '../../store/domains/domains.ts';
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
import { nextCheckAt, roundOf, TRANSITIONS } from './status.ts';

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

export interface AppliedResults {
  row: DomainRow;
  checks: CheckReport[];
  event: DomainEventKind | null;
}

export interface ApplyOptions {
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

import type { DomainEventKind } from '../../events/event-types.ts';
import type { DomainRow } from '../../store/domains/domains.ts';
import type { CheckName, Finding, Verdict } from './checks/check.ts';
import type { Findings } from './findings.ts';
import { MOVES, nextCheckAt, roundOf } from './status.ts';

/**
 * What follows from findings: the domain's next row and the event to tell. Pure. The one rule that everything
 * here keeps: what DNS did not say changes no flag.
 */
export interface Check {
  check: CheckName;
  passed: boolean;
  /** `unknown`: the DNS server did not answer, and `passed` is the last result. */
  result: 'ok' | 'missing' | 'wrong' | 'unknown';
  expected: string;
  found: string | null;
  hint: string;
}

export interface Outcome {
  row: DomainRow;
  checks: Check[];
  event: DomainEventKind | null;
}

export interface Occasion {
  now: number;
  /** By the clock, not by hand: only these make the waits longer. */
  automatic: boolean;
  /** When the pending DKIM key was made, null when none is awaited any more. */
  rotationSince: number | null;
}

const REQUIRED: readonly CheckName[] = ['dkim', 'spf', 'dmarc', 'mx'];

export function concluded(before: DomainRow, findings: Findings, occasion: Occasion): Outcome {
  const { now, automatic, rotationSince } = occasion;
  const flags = withFlags(before, findings);
  const certain = findings.checks.some(
    ({ check, verdict }) => REQUIRED.includes(check) && verdict === 'fail',
  );
  const { to, event } = MOVES[before.status][roundOf(flags, certain, now)];
  const moved = to !== before.status;
  const row: DomainRow = {
    ...flags,
    status: to,
    failing_since: to === 'TEMPORARY_FAILURE' && moved ? now : to === 'SUCCESS' ? null : before.failing_since,
    last_checked_at: now,
    check_count: moved ? 0 : before.check_count + (automatic ? 1 : 0),
  };
  if (automatic || moved) {
    const undecided = findings.checks.some(({ verdict }) => verdict === 'unknown');
    row.next_check_at = nextCheckAt(row, { undecided, rotationSince }, now);
  }
  if (isSeenToDiffer(before, row)) row.updated_at = now;
  return { row, checks: findings.checks.map((finding) => shownCheck(finding, before)), event };
}

function withFlags(row: DomainRow, findings: Findings): DomainRow {
  const verdicts = new Map(findings.checks.map(({ check, verdict }) => [check, verdict]));
  const flag = (verdict: Verdict | undefined, kept: 0 | 1): 0 | 1 =>
    verdict === 'pass' ? 1 : verdict === 'fail' ? 0 : kept;
  const altDkim = flag(verdicts.get('altDkim'), row.alt_dkim_enabled);
  return {
    ...row,
    dkim_enabled: flag(verdicts.get('dkim'), row.dkim_enabled),
    spf_configured: flag(verdicts.get('spf'), row.spf_configured),
    dmarc_configured: flag(verdicts.get('dmarc'), row.dmarc_configured),
    mx_configured: flag(verdicts.get('mx'), row.mx_configured),
    alt_dkim_enabled: altDkim,
    alt_spf_configured: flag(findings.altSpf, row.alt_spf_configured),
    alt_dmarc_configured: flag(verdicts.get('dmarc'), row.alt_dmarc_configured),
    alt_status: altDkim === 1 ? 'ACTIVE' : 'PENDING',
    tracking_host: findings.trackingHost === undefined ? row.tracking_host : findings.trackingHost,
    return_path: findings.returnPath ?? row.return_path,
  };
}

/** `before` says what holds for a check that DNS gave no answer to. */
function shownCheck({ check, verdict, expected, found, hint }: Finding, before: DomainRow): Check {
  const passed = verdict === 'unknown' ? PASSED_BEFORE[check](before) : verdict === 'pass';
  return { check, passed, result: resultOf(verdict, found), expected, found, hint };
}

function resultOf(verdict: Verdict, found: string | null): Check['result'] {
  if (verdict === 'unknown') return 'unknown';
  if (verdict === 'pass') return 'ok';
  return found === null ? 'missing' : 'wrong';
}

const PASSED_BEFORE: Record<CheckName, (row: DomainRow) => boolean> = {
  dkim: (row) => row.dkim_enabled === 1,
  spf: (row) => row.spf_configured === 1,
  dmarc: (row) => row.dmarc_configured === 1,
  mx: (row) => row.mx_configured === 1,
  tracking: (row) => row.tracking_host !== null,
  altDkim: (row) => row.alt_dkim_enabled === 1,
  // No flag of its own: a domain that was looked at before uses its own return path when that passes.
  returnPathSpf: (row) => row.last_checked_at !== null && row.return_path === 'customer',
};

/** Columns that a caller sees, or that decide how mail goes out. */
const TELLING: readonly (keyof DomainRow)[] = [
  'status',
  'dkim_enabled',
  'spf_configured',
  'dmarc_configured',
  'mx_configured',
  'alt_status',
  'alt_dkim_enabled',
  'alt_spf_configured',
  'alt_dmarc_configured',
  'tracking_host',
  'return_path',
];

function isSeenToDiffer(before: DomainRow, after: DomainRow): boolean {
  return TELLING.some((column) => before[column] !== after[column]);
}

import { describe, expect, it } from 'vitest';
import type { Finding, FindingStatus } from '../../../src/doctor/finding.ts';
import { type DoctorSetup, type SetupOptions, startHealthySetup } from '../setup.ts';

/** A part of a healthy installation that is broken, and how it must be diagnosed. */
export interface Row {
  /** What is broken. */
  title: string;
  check: string;
  options?: SetupOptions;
  break?: (setup: DoctorSetup) => Promise<void> | void;
  named?: string;
  integrityMs?: number;
  status: FindingStatus;
  /** In the subject of the finding. */
  subject?: string | RegExp;
  reason: RegExp;
  fix?: RegExp;
  /** Why the row cannot run here; false: it can. */
  skipped?: string | false;
}

/** A test for each row. `checks`: those of which the rows must have at least one each. */
export function describeBroken(title: string, checks: readonly string[], rows: readonly Row[]): void {
  describe(title, () => {
    for (const row of rows) {
      const { check, status, skipped = false } = row;
      const name = `${check}: ${row.title} is reported as ${status}${skipped === false ? '' : ` (skipped: ${skipped})`}`;
      it.skipIf(skipped !== false)(name, async () => {
        const setup = await startHealthySetup(row.options);
        await row.break?.(setup);
        const { named = null, integrityMs = 60_000 } = row;
        const findings = await setup.examine(check, { named, integrityMs });
        const expected = findings.filter((finding) => isExpected(finding, row));
        expect(expected, JSON.stringify(findings, null, 1)).toHaveLength(1);
      });
    }

    it('has rows for each of its checks', () => {
      expect(new Set(rows.map(({ check }) => check))).toEqual(new Set(checks));
    });
  });
}

function isExpected(finding: Finding, { check, status, subject = /./, reason, fix }: Row): boolean {
  const isSubject = typeof subject === 'string' ? finding.subject === subject : subject.test(finding.subject);
  return (
    finding.check === check &&
    finding.status === status &&
    isSubject &&
    reason.test(finding.reason) &&
    (fix === undefined || fix.test(finding.fix ?? ''))
  );
}

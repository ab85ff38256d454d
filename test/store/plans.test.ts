import { expect, it, vi } from 'vitest';
import { suppressionTable } from '../../src/store/suppressions.ts';
import { startStore } from '../support/store.ts';

/*
 * Questions that are asked for each mail must not take longer the more people an account has lost. SQLite likes
 * to walk an account in order of age rather than sort the few rows of one person: its plan tells.
 */
it("one person's suppressions and strikes are found by the person", () => {
  const { db } = startStore();
  const prepare = vi.spyOn(db, 'prepare');
  suppressionTable(db);
  const statements = prepare.mock.calls.map(([sql]) => sql);
  prepare.mockRestore();
  const plans = statements
    .filter((sql) => /^\s*SELECT.*recipient_hash = \?/.test(sql))
    .map((sql) => {
      const blanks = Array.from(sql.matchAll(/\?/g), () => null);
      const steps = db.prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`).all(...blanks);
      return steps.map(({ detail }) => detail).find((detail) => /^(?:SEARCH|SCAN)/.test(detail));
    });
  expect(plans).toEqual([
    expect.stringContaining('recipient_hash=?'),
    expect.stringContaining('recipient_hash=?'),
  ]);
});

import type { Database } from '../database/database.ts';

/** A read exceeded its budget. */
export class BudgetExceeded extends Error {}

/** Rows that are examined between two reads of the clock. */
const ROWS_PER_CHECK = 256;

/**
 * The time budget of reads on one connection. better-sqlite3 has no interrupt, so a running statement cannot be ended from
 * outside. Therefore each condition of a reading statement begins with `within_budget()`, a function that throws after
 * the budget and returns true before. It names no column, so it changes no plan; SQLite calls it for each row that it
 * examines (about 50 ns).
 *
 * Bounds the statements that are prepared on `db` after this call. `now`: monotonic milliseconds.
 */
export function boundReads(db: Database, now: () => number = () => performance.now()) {
  let deadline = Number.POSITIVE_INFINITY;
  let rows = 0;
  let budget = Number.POSITIVE_INFINITY;
  // Not deterministic: SQLite would call it once per statement.
  db.function('within_budget', { deterministic: false, directOnly: true }, () => {
    if (++rows % ROWS_PER_CHECK === 0 && now() > deadline)
      throw new BudgetExceeded(`the read exceeded its time budget of ${budget} ms`);
    return 1;
  });
  const prepare = db.prepare.bind(db);
  db.prepare = (sql: string) => prepare(boundedStatement(sql));
  return {
    /** Begins a read with its budget in ms. */
    begin: (budgetMs: number): void => {
      budget = budgetMs;
      deadline = now() + budgetMs;
      rows = 0;
    },
  };
}

const READS = /^\s*(?:SELECT|WITH)\b/i;

/** A condition whose top operator is OR does not change its meaning, as the function is always true. */
export function boundedStatement(sql: string): string {
  return READS.test(sql) ? sql.replaceAll(/\bWHERE\b/gi, 'WHERE within_budget() AND') : sql;
}

import type { AgedRule } from '../data-policy.ts';
import type { Database } from '../database/database.ts';

export interface AgedWalk {
  /** The number to begin with. */
  from: number;
  /** Epoch ms. */
  before: number;
  now: number;
  rows: number;
}

export interface AgedPortion {
  removed: number;
  next: number | null;
  end: number;
}

export type AgedTable = Pick<AgedRule, 'number' | 'time' | 'only' | 'children'> & { table: string };

interface Row {
  number: number;
  time: number;
}

interface Range {
  from: number;
  to: number;
  before: number;
}

/**
 * Deletes rows by age where numbers increase with time, from the lowest number on, without an index on the time: it reads
 * the rows that it deletes and one more. Where the clock was set, times are out of order: a row with a time in the future
 * is skipped, and the walk ends at the first row that is neither old nor in the future, whatever times follow.
 *
 * Names of tables and columns become part of the SQL: they come from data policies only. `only`: a further condition
 * for rows that are deleted. Keeps no position between calls.
 */
export function agedRows(db: Database, { table, number, time, only, children }: AgedTable) {
  const bounds = db.prepare<[], { first: number | null; last: number | null }>(
    `SELECT (SELECT min(${number}) FROM ${table}) AS first, (SELECT max(${number}) FROM ${table}) AS last`,
  );
  const rowFrom = db.prepare<[number], Row>(
    `SELECT ${number} AS number, ${time} AS time FROM ${table} WHERE ${number} >= ? ORDER BY ${number} LIMIT 1`,
  );
  const firstYoung = db
    .prepare<Range & { now: number }, number>(`
      SELECT ${number} FROM ${table} WHERE ${number} >= @from AND ${number} < @to AND ${time} >= @before AND ${time} <= @now
      ORDER BY ${number} LIMIT 1`)
    .pluck();
  const where = `${number} >= @from AND ${number} < @to AND ${time} < @before${only === undefined ? '' : ` AND ${only}`}`;
  const remove = db.prepare<Range>(`DELETE FROM ${table} WHERE ${where}`);
  const removeChildren =
    children === undefined
      ? null
      : db.prepare<Range>(`
          DELETE FROM ${children.table} WHERE ${children.number} IN (SELECT ${number} FROM ${table} WHERE ${where})`);

  return {
    /** The lowest number; null: there is no row. */
    first: (): number | null => bounds.get()?.first ?? null,
    /**
     * Deletes rows older than `before` within `rows` numbers. `next`: the number to continue with; null: there is nothing
     * more to delete. `end`: all rows below it were deleted or skipped.
     */
    purge: ({ from, before, now, rows }: AgedWalk): AgedPortion => {
      const row = rowFrom.get(from);
      if (row === undefined) return { removed: 0, next: null, end: Number.MAX_SAFE_INTEGER };
      if (row.time >= before && row.time <= now) return { removed: 0, next: null, end: row.number };
      const full = { from: row.number, to: row.number + rows, before };
      const young = firstYoung.get({ ...full, now });
      const range = { ...full, to: young ?? full.to };
      removeChildren?.run(range);
      const { changes } = remove.run(range);
      return { removed: changes, next: young === undefined ? range.to : null, end: range.to };
    },
    /** Estimates how many numbers will be deleted, by bisection. */
    estimate: (before: number): number => {
      const { first, last } = bounds.get() ?? { first: null, last: null };
      if (first === null || last === null) return 0;
      let low = first;
      let high = last + 1;
      while (low < high) {
        const middle = Math.floor((low + high) / 2);
        const row = rowFrom.get(middle);
        if (row === undefined || row.time >= before) high = middle;
        else low = row.number + 1;
      }
      return low - first;
    },
  };
}

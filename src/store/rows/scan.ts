import type { Database } from '../database.ts';

/**
 * Bounded scans. A list reads an index in the order of `seq`. Where a filter cannot be answered by that index, a page
 * looks at a limited number of rows: it may then be short, even empty, and the next page continues where it ended.
 * So a page costs the same whatever the filter selects and however large the table is.
 */
export interface ScanPage<Row> {
  rows: Row[];
  /** The page key of the next page; null: nothing follows. */
  nextSeq: number | null;
}

/** Rows that one page looks at, at most. */
export const MAX_LOOKS = 5000;

export const EMPTY_PAGE = { rows: [], nextSeq: null };

/** A range of `seq`; both ends are outside. */
export interface SeqRange {
  afterSeq: number;
  beforeSeq: number;
}

/**
 * Returns a function that finds the first row of a table at or after a time, by bisection: numbers and times rise
 * together, as far as the clock was not set back. Past the last row it returns the number after that.
 */
export function seqFinder(
  db: Database,
  { table, time }: { table: 'events'; time: 'at' } | { table: 'messages'; time: 'created_at' },
): (at: number) => number {
  const bounds = db.prepare<[], { first: number | null; last: number | null }>(
    `SELECT (SELECT min(seq) FROM ${table}) AS first, (SELECT max(seq) FROM ${table}) AS last`,
  );
  const from = db.prepare<[number], { seq: number; at: number }>(
    `SELECT seq, ${time} AS at FROM ${table} WHERE seq >= ? ORDER BY seq LIMIT 1`,
  );
  return (at) => {
    const { first, last } = bounds.get() ?? { first: null, last: null };
    let low = first ?? 1;
    let high = (last ?? 0) + 1;
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      const row = from.get(middle);
      if (row === undefined || row.at >= at) high = middle;
      else low = row.seq + 1;
    }
    return low;
  };
}

import type { Database } from '../database/database.ts';

/** Selects a page of a list, newest first. */
export interface PageFilter {
  accountId: string;
  /** Only rows with a lower number; null: from the newest on. */
  beforeSeq: number | null;
  limit: number;
}

/** A page of resources with names. */
export interface NamedPageFilter extends PageFilter {
  /** Part of the name, in any ASCII case. */
  search?: string;
}

export interface Page<Row> {
  rows: Row[];
  /** Whether more rows follow. */
  more: boolean;
}

/** A page from rows that were read with a limit of `limit + 1`. */
export function pageOf<Row>(rows: Row[], limit: number): Page<Row> {
  return { rows: rows.slice(0, limit), more: rows.length > limit };
}

/**
 * A page of a bounded scan. The list reads an index in the order of `seq`. Where that index does not answer a filter, a
 * page examines a limited number of rows: it may have fewer rows than its limit, even none, and the next page continues
 * where it ended. The cost of a page therefore depends neither on the filter nor on the size of the table.
 */
export interface ScanPage<Row> {
  rows: Row[];
  /** The page key of the next page; null: nothing follows. */
  nextSeq: number | null;
}

/** Maximum number of rows that one page examines. */
export const MAX_SCANNED_ROWS = 5000;

export const EMPTY_PAGE = { rows: [], nextSeq: null };

/** A range of `seq` that excludes its ends. */
export interface SeqBounds {
  afterSeq: number;
  beforeSeq: number;
}

/**
 * Returns a function that finds the first row of a table at or after a time, by bisection: numbers and times increase
 * together, except where the clock was set back. After the last row it returns the next number.
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

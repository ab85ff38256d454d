import type { BoundId } from './rows/id-numbers.ts';

/**
 * Counts that units of work add up in memory. The writer adds those of all units of a commit to their table immediately before
 * it, in the same transaction, so that a row that changes in many units is written once. The counts of a unit that is
 * rolled back are dropped with it.
 */
export interface PendingCounts<Row> {
  /** Adds to the row with this id, in a unit of work. The row is kept, and must not be used afterwards. */
  add(id: string, row: Row): void;
  /** Ends a unit of work; a unit that is not committed was rolled back. */
  endUnit(isCommitted: boolean): void;
  /** Returns the rows of all units of the open transaction, which must be written, and begins with none. */
  take(): Row[];
  /** Drops the counts of a transaction that was rolled back. */
  discard(): void;
}

/** `merge` adds the counts of the second row to the first. */
export function createPendingCounts<Row>(merge: (row: Row, added: Row) => void): PendingCounts<Row> {
  /** Of the unit of work that is running, and of the earlier units in the open transaction. */
  const unit = new Map<string, Row>();
  const group = new Map<string, Row>();

  function addTo(rows: Map<string, Row>, id: string, row: Row): void {
    const known = rows.get(id);
    if (known === undefined) rows.set(id, row);
    else merge(known, row);
  }

  return {
    add: (id, row) => addTo(unit, id, row),
    endUnit: (isCommitted) => {
      if (unit.size === 0) return;
      if (isCommitted) for (const [id, row] of unit) addTo(group, id, row);
      unit.clear();
    },
    take: () => {
      const rows = [...group.values()];
      group.clear();
      return rows;
    },
    discard: () => {
      unit.clear();
      group.clear();
    },
  };
}

/** Full periods of accounts in memory, of each table. */
const MAX_REMEMBERED = 1000;

/**
 * Returns whether an account has all rows that it may have of a period, which begins at a time in epoch ms. Rows of the current
 * periods are not deleted. `rowsOf` counts them up to `limit`.
 */
export function createRowLimit(
  maxRows: number,
  rowsOf: (period: number, account: BoundId, limit: number) => number,
): (period: number, account: BoundId) => boolean {
  const full = new Set<string>();
  return (period, account) => {
    const key = `${period} ${account}`;
    if (full.has(key)) return true;
    if (rowsOf(period, account, maxRows) < maxRows) return false;
    if (full.size >= MAX_REMEMBERED) full.clear();
    full.add(key);
    return true;
  };
}

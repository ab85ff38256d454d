/** Maximum of a count, so that sums stay exact integers. */
export const MAX_COUNT = 1e12;

export interface Sums<Row> {
  add(row: Row): void;
  /** Number of rows. */
  size(): number;
  /** At most `limit` rows, those with the highest counts first. */
  highest(limit: number): Row[];
}

/** Adds up the counts of rows that are otherwise equal. */
export function createSums<Row extends { count: number }>(): Sums<Row> {
  const rows = new Map<string, Row>();
  return {
    add: (row) => {
      const count = Math.min(row.count, MAX_COUNT);
      const key = JSON.stringify({ ...row, count: 0 });
      const same = rows.get(key);
      if (same === undefined) rows.set(key, { ...row, count });
      else same.count = Math.min(same.count + count, MAX_COUNT);
    },
    size: () => rows.size,
    highest: (limit) => [...rows.values()].sort((a, b) => b.count - a.count).slice(0, limit),
  };
}

import type { Database } from './database/database.ts';

/** A column with sealed values. */
export interface SealedColumn {
  table: string;
  /** The primary key. */
  key: string;
  column: string;
  /** The rows, with `key`, `column` and what identifies the value; a subquery or the table itself. */
  from?: string;
}

export type SealedRow = Readonly<Record<string, unknown>>;

/** Reads and replaces sealed values of any table, for the replacement of the master key. */
export function sealedValueTable(db: Database) {
  return {
    /** Rows with a value, by their key, after `after`; null: from the first one on. */
    rows: ({ table, key, column, from = table }: SealedColumn, after: unknown, limit: number): SealedRow[] =>
      db
        .prepare<unknown[], SealedRow>(
          `SELECT * FROM ${from} WHERE ${column} IS NOT NULL ${after === null ? '' : `AND ${key} > ?`} ORDER BY ${key} LIMIT ?`,
        )
        .all(...(after === null ? [limit] : [after, limit])),
    replace: ({ table, key, column }: SealedColumn, keyValue: unknown, value: Buffer | string): void => {
      db.prepare(`UPDATE ${table} SET ${column} = ? WHERE ${key} = ?`).run(value, keyValue);
    },
    count: ({ column, table, from = table }: SealedColumn): number =>
      db.prepare<[], number>(`SELECT count(*) FROM ${from} WHERE ${column} IS NOT NULL`).pluck().get() ?? 0,
  };
}

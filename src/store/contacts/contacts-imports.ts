import type { Database } from '../database/database.ts';

/** Progress of an import of a file: written with the imported rows, deleted when the import is complete. */
export interface ContactImportRow {
  /** Identifies the file, the account, the group and the options. */
  import_key: string;
  account_id: string;
  /** The first byte that is not yet read, and the number of lines before it. */
  at_byte: number;
  at_line: number;
  /** JSON. */
  counts: string;
  /** Length of the report of rejected rows. */
  report_bytes: number;
  started_at: number;
  updated_at: number;
}

/**
 * `contact_imports`, for imports of the command line that are not complete. `put` of a key that exists leaves
 * `account_id` and `started_at` unchanged.
 */
export function contactImportTable(db: Database) {
  const get = db.prepare<[string], ContactImportRow>('SELECT * FROM contact_imports WHERE import_key = ?');
  const put = db.prepare<ContactImportRow>(`
    INSERT INTO contact_imports (import_key, account_id, at_byte, at_line, counts, report_bytes, started_at, updated_at)
    VALUES (@import_key, @account_id, @at_byte, @at_line, @counts, @report_bytes, @started_at, @updated_at)
    ON CONFLICT DO UPDATE SET at_byte = @at_byte, at_line = @at_line, counts = @counts, report_bytes = @report_bytes,
      updated_at = @updated_at`);
  const remove = db.prepare<[string]>('DELETE FROM contact_imports WHERE import_key = ?');
  return {
    get: (importKey: string): ContactImportRow | null => get.get(importKey) ?? null,
    put: (row: ContactImportRow): void => {
      put.run(row);
    },
    remove: (importKey: string): void => {
      remove.run(importKey);
    },
  };
}

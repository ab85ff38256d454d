import type { Database } from '../database/database.ts';
import { columnValues, statements } from '../database/statements.ts';

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
  const sql = statements(db);
  return {
    get: sql.get<[importKey: string], ContactImportRow>('SELECT * FROM contact_imports WHERE import_key = ?'),
    put: sql.run<[row: ContactImportRow]>(`
      INSERT INTO contact_imports ${columnValues(`import_key, account_id, at_byte, at_line, counts, report_bytes,
        started_at, updated_at`)}
      ON CONFLICT DO UPDATE SET at_byte = @at_byte, at_line = @at_line, counts = @counts, report_bytes = @report_bytes,
        updated_at = @updated_at`),
    remove: sql.run<[importKey: string]>('DELETE FROM contact_imports WHERE import_key = ?'),
  };
}

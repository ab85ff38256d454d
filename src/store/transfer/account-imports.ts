import type { Database } from '../database/database.ts';
import { columnValues, statements } from '../database/statements.ts';

/** The import of an account that is not complete. */
export interface AccountImportRow {
  account_id: string;
  /** SHA-256 of the records in the file, in hexadecimal. */
  digest: string;
  /** Records that are imported. */
  records: number;
  started_at: number;
  updated_at: number;
}

/**
 * `account_imports`: a row exists from the first portion of an import until it is complete. `put` leaves `digest` and
 * `started_at` of an existing one unchanged.
 */
export function accountImportTable(db: Database) {
  const sql = statements(db);
  return {
    /** Null: no import of the account is in progress. */
    get: sql.get<[accountId: string], AccountImportRow>('SELECT * FROM account_imports WHERE account_id = ?'),
    put: sql.run<[row: AccountImportRow]>(`
      INSERT INTO account_imports ${columnValues('account_id, digest, records, started_at, updated_at')}
      ON CONFLICT (account_id) DO UPDATE SET records = excluded.records, updated_at = excluded.updated_at`),
    remove: sql.run<[accountId: string]>('DELETE FROM account_imports WHERE account_id = ?'),
  };
}

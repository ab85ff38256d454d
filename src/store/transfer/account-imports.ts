import type { Database } from '../database/database.ts';

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
  const get = db.prepare<[string], AccountImportRow>('SELECT * FROM account_imports WHERE account_id = ?');
  const put = db.prepare<AccountImportRow>(`
    INSERT INTO account_imports (account_id, digest, records, started_at, updated_at)
    VALUES (@account_id, @digest, @records, @started_at, @updated_at)
    ON CONFLICT (account_id) DO UPDATE SET records = excluded.records, updated_at = excluded.updated_at`);
  const remove = db.prepare<[string]>('DELETE FROM account_imports WHERE account_id = ?');
  return {
    /** Null: no import of the account is in progress. */
    get: (accountId: string): AccountImportRow | null => get.get(accountId) ?? null,
    put: (row: AccountImportRow): void => {
      put.run(row);
    },
    remove: (accountId: string): void => {
      remove.run(accountId);
    },
  };
}

import type { Database } from '../database/database.ts';
import { columnsSet, statements } from '../database/statements.ts';

/** An import of contacts that the daemon runs after the upload. Its file is in IMPORT_FOLDER until it ends. */
export interface BackgroundImportRow {
  import_id: string;
  account_id: string;
  /** `subscription_group_id` of the group that every row joins. */
  group_id: string | null;
  file_name: string | null;
  format: 'csv' | 'ndjson';
  /** JSON: fields by the names of columns. */
  columns: string | null;
  /** JSON: who uploaded it, for the consent history. */
  actor: string;
  /** Length of the file. */
  bytes: number;
  /** The first byte that is not yet imported, and the number of lines before it. */
  at_byte: number;
  at_line: number;
  /** JSON. */
  counts: string;
  /** JSON: the first rejected rows. */
  rejected_rows: string;
  /** JSON: columns without a field. */
  ignored: string;
  /** JSON: what the addresses have; null: nothing was examined. */
  hygiene: string | null;
  hygiene_mode: 'report' | 'reject' | 'off';
  status: BackgroundImportStatus;
  /** Why it failed. */
  reason: string | null;
  created_at: number;
  started_at: number | null;
  /** Null while it waits or runs. */
  finished_at: number | null;
}

export type BackgroundImportStatus = 'waiting' | 'running' | EndStatus;
type EndStatus = 'completed' | 'failed' | 'cancelled';

export type NewBackgroundImport = Omit<
  BackgroundImportRow,
  'at_byte' | 'at_line' | 'rejected_rows' | 'hygiene' | 'status' | 'reason' | 'started_at' | 'finished_at'
>;

export type ImportProgress = Pick<
  BackgroundImportRow,
  'import_id' | 'at_byte' | 'at_line' | 'counts' | 'rejected_rows' | 'ignored' | 'hygiene'
>;

/** The directory of the uploaded files in the data directory. It is not part of backups. */
export const IMPORT_FOLDER = 'imports';
/** Imports of an account that are kept, the newest. */
export const MAX_KEPT_IMPORTS = 50;

/**
 * `background_imports`; those that wait or run are read by the index `background_imports_unfinished`. An import that
 * has ended does not change any more: changes of it return false or do nothing.
 */
export function backgroundImportTable(db: Database) {
  const sql = statements(db);
  const insert = sql.run<[NewBackgroundImport]>(`
    INSERT INTO background_imports (import_id, account_id, group_id, file_name, format, columns, actor, bytes, counts,
      ignored, hygiene_mode, status, created_at)
    VALUES (@import_id, @account_id, @group_id, @file_name, @format, @columns, @actor, @bytes, @counts, @ignored,
      @hygiene_mode,
      'waiting', @created_at)`);
  const dropOld = sql.run<[string, string]>(`
    DELETE FROM background_imports WHERE account_id = ? AND finished_at IS NOT NULL AND import_id <= (
      SELECT import_id FROM background_imports WHERE account_id = ?
      ORDER BY import_id DESC LIMIT 1 OFFSET ${MAX_KEPT_IMPORTS})`);
  const unfinished = db
    .prepare<[string], number>('SELECT 1 FROM background_imports WHERE import_id = ? AND finished_at IS NULL')
    .pluck();
  const begin = sql.changed<[number, string]>(`
    UPDATE background_imports SET status = 'running', started_at = coalesce(started_at, ?)
    WHERE import_id = ? AND finished_at IS NULL`);
  const finish = sql.changed<[EndStatus, string | null, number, string]>(`
    UPDATE background_imports SET status = ?, reason = ?, finished_at = ?
    WHERE import_id = ? AND finished_at IS NULL`);
  return {
    /** Adds an import, and drops the oldest finished ones of its account above MAX_KEPT_IMPORTS. */
    add: (row: NewBackgroundImport): void => {
      insert(row);
      dropOld(row.account_id, row.account_id);
    },
    get: sql.get<[accountId: string, importId: string], BackgroundImportRow>(
      'SELECT * FROM background_imports WHERE account_id = ? AND import_id = ?',
    ),
    /** Newest first. */
    list: sql.all<[accountId: string], BackgroundImportRow>(`
      SELECT * FROM background_imports WHERE account_id = ? ORDER BY import_id DESC LIMIT ${MAX_KEPT_IMPORTS}`),
    countUnfinished: sql.count<[accountId: string]>(
      'SELECT count(*) FROM background_imports WHERE account_id = ? AND finished_at IS NULL',
    ),
    isUnfinished: (importId: string): boolean => unfinished.get(importId) === 1,
    /** The oldest unfinished import of the next active account in the order of ids. */
    nextAfter: sql.get<[accountId: string], BackgroundImportRow>(`
      SELECT background_imports.* FROM background_imports JOIN accounts USING (account_id)
      WHERE finished_at IS NULL AND account_id > ? AND accounts.status = 'active'
      ORDER BY account_id, import_id LIMIT 1`),
    begin: (importId: string, at: number): boolean => begin(at, importId),
    /** Records what was imported; false: the import has ended. */
    advance: sql.changed<[progress: ImportProgress]>(`
      UPDATE background_imports SET ${columnsSet('at_byte, at_line, counts, rejected_rows, ignored, hygiene')}
      WHERE import_id = @import_id AND finished_at IS NULL`),
    /** Marks an import that runs as waiting. */
    wait: sql.run<[importId: string]>(
      "UPDATE background_imports SET status = 'waiting' WHERE import_id = ? AND status = 'running'",
    ),
    /** Ends an import; false: it has ended before. */
    finish: (importId: string, status: EndStatus, reason: string | null, at: number): boolean =>
      finish(status, reason, at, importId),
  };
}

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
      INSERT INTO ${sql.row('contact_imports')}
      ON CONFLICT DO UPDATE SET at_byte = @at_byte, at_line = @at_line, counts = @counts, report_bytes = @report_bytes,
        updated_at = @updated_at`),
    remove: sql.run<[importKey: string]>('DELETE FROM contact_imports WHERE import_key = ?'),
  };
}

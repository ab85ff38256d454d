import type { Database } from '../database/database.ts';

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
  'at_byte' | 'at_line' | 'rejected_rows' | 'status' | 'reason' | 'started_at' | 'finished_at'
>;

export type ImportProgress = Pick<
  BackgroundImportRow,
  'import_id' | 'at_byte' | 'at_line' | 'counts' | 'rejected_rows' | 'ignored'
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
  const insert = db.prepare<NewBackgroundImport>(`
    INSERT INTO background_imports (import_id, account_id, group_id, file_name, format, columns, actor, bytes, counts,
      ignored, status, created_at)
    VALUES (@import_id, @account_id, @group_id, @file_name, @format, @columns, @actor, @bytes, @counts, @ignored,
      'waiting', @created_at)`);
  const dropOld = db.prepare<[string, string]>(`
    DELETE FROM background_imports WHERE account_id = ? AND finished_at IS NOT NULL AND import_id <= (
      SELECT import_id FROM background_imports WHERE account_id = ?
      ORDER BY import_id DESC LIMIT 1 OFFSET ${MAX_KEPT_IMPORTS})`);
  const get = db.prepare<[string, string], BackgroundImportRow>(
    'SELECT * FROM background_imports WHERE account_id = ? AND import_id = ?',
  );
  const list = db.prepare<[string], BackgroundImportRow>(`
    SELECT * FROM background_imports WHERE account_id = ? ORDER BY import_id DESC LIMIT ${MAX_KEPT_IMPORTS}`);
  const countUnfinished = db
    .prepare<[string], number>(
      'SELECT count(*) FROM background_imports WHERE account_id = ? AND finished_at IS NULL',
    )
    .pluck();
  const unfinished = db
    .prepare<[string], number>('SELECT 1 FROM background_imports WHERE import_id = ? AND finished_at IS NULL')
    .pluck();
  const next = db.prepare<[string], BackgroundImportRow>(`
    SELECT background_imports.* FROM background_imports JOIN accounts USING (account_id)
    WHERE finished_at IS NULL AND account_id > ? AND accounts.status = 'active'
    ORDER BY account_id, import_id LIMIT 1`);
  const begin = db.prepare<[number, string]>(`
    UPDATE background_imports SET status = 'running', started_at = coalesce(started_at, ?)
    WHERE import_id = ? AND finished_at IS NULL`);
  const advance = db.prepare<ImportProgress>(`
    UPDATE background_imports SET at_byte = @at_byte, at_line = @at_line, counts = @counts,
      rejected_rows = @rejected_rows, ignored = @ignored
    WHERE import_id = @import_id AND finished_at IS NULL`);
  const wait = db.prepare<[string]>(
    "UPDATE background_imports SET status = 'waiting' WHERE import_id = ? AND status = 'running'",
  );
  const finish = db.prepare<[EndStatus, string | null, number, string]>(`
    UPDATE background_imports SET status = ?, reason = ?, finished_at = ?
    WHERE import_id = ? AND finished_at IS NULL`);
  return {
    /** Adds an import, and drops the oldest finished ones of its account above MAX_KEPT_IMPORTS. */
    add: (row: NewBackgroundImport): void => {
      insert.run(row);
      dropOld.run(row.account_id, row.account_id);
    },
    get: (accountId: string, importId: string): BackgroundImportRow | null =>
      get.get(accountId, importId) ?? null,
    /** Newest first. */
    list: (accountId: string): BackgroundImportRow[] => list.all(accountId),
    countUnfinished: (accountId: string): number => countUnfinished.get(accountId) ?? 0,
    isUnfinished: (importId: string): boolean => unfinished.get(importId) === 1,
    /** The oldest unfinished import of the next active account in the order of ids. */
    nextAfter: (accountId: string): BackgroundImportRow | null => next.get(accountId) ?? null,
    begin: (importId: string, at: number): boolean => begin.run(at, importId).changes === 1,
    /** Records what was imported; false: the import has ended. */
    advance: (progress: ImportProgress): boolean => advance.run(progress).changes === 1,
    /** Marks an import that runs as waiting. */
    wait: (importId: string): void => {
      wait.run(importId);
    },
    /** Ends an import; false: it has ended before. */
    finish: (importId: string, status: EndStatus, reason: string | null, at: number): boolean =>
      finish.run(status, reason, at, importId).changes === 1,
  };
}

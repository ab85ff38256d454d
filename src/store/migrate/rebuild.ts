import { closeSync, openSync, renameSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { type Database, openConnection, readNumber } from '../database/connection.ts';
import { StoreFault } from '../database/failure.ts';
import { statements } from '../database/statements.ts';
import { copyOwner, keepOldFile, newFileOf, syncPath } from './files.ts';
import {
  type CopyPlan,
  countOf,
  type FileFormat,
  planCopies,
  quoted,
  type Rebuild,
  type SqlValue,
} from './rebuild-plan.ts';

/*
 * Rebuilds a database into a new file with another schema. The new file is written in the directory of the old one,
 * checked, synced and renamed over it, so that a process that is killed at any moment leaves either the old database or
 * the new one, complete. The old file stays as the copy from before the migration (files.ts).
 *
 * The connection locks the old database exclusively until the rename is done, and takes it out of WAL mode first:
 * no other process can have it open, and there is no log that could be applied to the new file.
 */

export type RebuildStep = 'copy' | 'index' | 'check' | 'sync' | 'linked' | 'renamed' | 'done';

export interface RebuildProgress {
  step: RebuildStep;
  /** The table that is copied, the index that is built, the check that runs; '' when all are. */
  item: string;
  /** Rows of the old tables that were copied, or indexes that were built, of all of them. */
  done: number;
  total: number;
}

export interface RebuildOptions {
  /** The database. */
  file: string;
  /** The name that the old database gets; null: it is not kept. */
  keepAs: string | null;
  onProgress?(progress: RebuildProgress): void;
  /** How long to wait for other processes to close the database. */
  busyTimeoutMs?: number;
  /** Rows that are copied between two calls of `onProgress`. */
  chunkRows?: number;
  /** Omits the checks of row counts and foreign keys: for a sample, in which rows are missing. */
  withoutChecks?: boolean;
}

const CHUNK_ROWS = 5000;
const BUSY_TIMEOUT_MS = 5000;
/** 64 MiB: unique constraints of tables are filled in random order. Sorting for an index uses as much. */
const CACHE_KIB = 65_536;

/**
 * Replaces the database by one with the schema of `rebuild`. The caller holds the daemon lock, has called
 * `removeLeftovers`, and has no connection to the database. Throws when another process does; the old database is
 * then unchanged, except that it is no longer in WAL mode.
 */
export function rebuildDatabase(rebuild: Rebuild, options: RebuildOptions): void {
  const { file, keepAs, onProgress = () => {} } = options;
  const partial = newFileOf(file);
  const db = openNew(rebuild, partial);
  try {
    attachOld(db, file, options.busyTimeoutMs ?? BUSY_TIMEOUT_MS);
    const found = readNumber(db, 'PRAGMA old.user_version');
    if (found < rebuild.from || found >= rebuild.version)
      throw new Error(`rebuild ${rebuild.version} reads schemas from ${rebuild.from} on, not ${found}`);
    for (const [name, call] of Object.entries(rebuild.functions ?? {}))
      db.function(name, { deterministic: true, varargs: true }, call);

    db.exec(rebuild.tables);
    const plans = planCopies(db, rebuild, found);
    const rows = copyTables(db, plans, options.chunkRows ?? CHUNK_ROWS, onProgress);
    copySequences(db, plans);
    buildIndexes(db, rebuild, onProgress);
    if (options.withoutChecks !== true) check(db, plans, rows, onProgress);
    db.exec(`PRAGMA main.user_version = ${rebuild.version}`);
    copyOwner(file, partial);
    onProgress({ step: 'sync', item: basename(partial), done: 0, total: 1 });
    syncPath(partial);
    if (keepAs !== null) {
      keepOldFile(file, keepAs);
      syncPath(dirname(file));
      onProgress({ step: 'linked', item: basename(keepAs), done: 1, total: 2 });
    }
    renameSync(partial, file);
    syncPath(dirname(file));
    onProgress({ step: 'renamed', item: basename(file), done: 2, total: 2 });
  } finally {
    // Releases the lock on the old file: only now may other processes open the database.
    db.close();
  }
  onProgress({ step: 'done', item: basename(file), done: 1, total: 1 });
}

/**
 * Sets the format of a file that has no table yet. Incremental vacuum writes 3 % more pages, and lets retention return
 * free pages in portions (docs/large-databases.md); VACUUM would exclude all writers for a minute per 10 GB.
 */
export function setFileFormat(db: Database, { pageSize, autoVacuum = 'incremental' }: FileFormat = {}): void {
  if (pageSize !== undefined) db.exec(`PRAGMA page_size = ${pageSize}`);
  db.exec(`PRAGMA auto_vacuum = ${autoVacuum}`);
}

/** Opens the new file without flushes and rollback: a file that is not complete is removed. */
function openNew(rebuild: Rebuild, partial: string): Database {
  closeSync(openSync(partial, 'wx', 0o600));
  const db = openConnection(partial, { timeout: 0 });
  setFileFormat(db, rebuild);
  // With the schema name: otherwise the pragma would change the attached database, too.
  db.exec('PRAGMA main.locking_mode = EXCLUSIVE');
  // SQLite's defensive mode forbids a database without a journal.
  db.unsafeMode(true);
  db.exec('PRAGMA main.journal_mode = OFF');
  db.unsafeMode(false);
  db.exec('PRAGMA synchronous = OFF');
  db.exec('PRAGMA foreign_keys = OFF');
  db.exec('PRAGMA secure_delete = OFF');
  db.exec('PRAGMA temp_store = FILE');
  db.exec(`PRAGMA cache_size = -${CACHE_KIB}`);
  return db;
}

/** Attaches the old database as `old` and locks it exclusively. */
function attachOld(db: Database, file: string, busyTimeoutMs: number): void {
  db.prepare<[string]>('ATTACH ? AS old').run(file);
  db.exec(`PRAGMA busy_timeout = ${busyTimeoutMs}`);
  leaveWal(db, 'old');
}

/**
 * Takes an attached database out of WAL mode, which fails while any other process has it open, and locks it. Its
 * log is then part of the file.
 */
export function leaveWal(db: Database, schema: string): void {
  const mode = db.prepare<[], string>(`PRAGMA ${schema}.journal_mode`).pluck();
  const leave = db.prepare<[], string>(`PRAGMA ${schema}.journal_mode = DELETE`).pluck();
  leave.get();
  db.exec(`PRAGMA ${schema}.locking_mode = EXCLUSIVE`);
  db.exec('BEGIN EXCLUSIVE');
  const reached = mode.get();
  db.exec('COMMIT');
  if (reached !== 'delete') throw new StoreFault('Another process opened the database during the migration');
}

/**
 * One transaction for each table: pages are written when the cache is full, not after each chunk. Returns the numbers
 * of rows of the old tables.
 */
function copyTables(
  db: Database,
  plans: readonly CopyPlan[],
  chunkRows: number,
  onProgress: (progress: RebuildProgress) => void,
): ReadonlyMap<string, number> {
  const sizes = new Map<string, number>();
  for (const { from } of plans) if (!sizes.has(from)) sizes.set(from, readNumber(db, countOf(from)));
  const total = plans.reduce((sum, { from }) => sum + (sizes.get(from) ?? 0), 0);
  let done = 0;
  for (const plan of plans) {
    const report = (rows: number) => onProgress({ step: 'copy', item: plan.table, done: done + rows, total });
    report(0);
    db.exec('BEGIN');
    copyTable(db, plan, chunkRows, report);
    db.exec('COMMIT');
    done += sizes.get(plan.from) ?? 0;
  }
  onProgress({ step: 'copy', item: '', done, total });
  return sizes;
}

/** Copies in ranges of the key that hold `chunkRows` rows of the old table, so that progress can be reported. */
function copyTable(db: Database, plan: CopyPlan, chunkRows: number, report: (rows: number) => void): void {
  const { table, from, key, into } = plan;
  const columns = key.map((column) => `o.${quoted(column)}`);
  const list = columns.join(', ');
  const tuple = key.length === 1 ? list : `(${list})`;
  const marks = key.length === 1 ? '?' : `(${key.map(() => '?').join(', ')})`;
  const insert = `INSERT INTO main.${quoted(table)} (${into.join(', ')})`;
  const bound = (condition: string) =>
    db
      .prepare<SqlValue[], SqlValue[]>(
        `SELECT ${list} FROM old.${quoted(from)} AS o ${condition} ORDER BY ${list} LIMIT 1 OFFSET ${chunkRows - 1}`,
      )
      .safeIntegers()
      .raw();
  const copy = (range: string) => db.prepare<SqlValue[]>(`${insert} ${plan.select(range)}`);
  const first = bound('');
  const next = bound(`WHERE ${tuple} > ${marks}`);
  const copyBetween = copy(`${tuple} > ${marks} AND ${tuple} <= ${marks}`);
  let after = first.get();
  let copied = chunkRows;
  if (after === undefined) {
    copy('TRUE').run();
    return;
  }
  copy(`${tuple} <= ${marks}`).run(...after);
  report(copied);
  for (;;) {
    const upTo = next.get(...after);
    if (upTo === undefined) break;
    copyBetween.run(...after, ...upTo);
    after = upTo;
    copied += chunkRows;
    report(copied);
  }
  copy(`${tuple} > ${marks}`).run(...after);
}

/** Copies the counters of AUTOINCREMENT: a number is never assigned again, even when its row is deleted. */
function copySequences(db: Database, plans: readonly CopyPlan[]): void {
  const sql = statements(db);
  const hasSequences = (schema: string) =>
    readNumber(db, `SELECT count(*) FROM ${schema}.sqlite_schema WHERE name = 'sqlite_sequence'`) > 0;
  if (!hasSequences('main') || !hasSequences('old')) return;
  const raise = sql.run<[string, string]>(`UPDATE main.sqlite_sequence AS n SET seq = max(n.seq, o.seq)
    FROM old.sqlite_sequence AS o WHERE n.name = ? AND o.name = ?`);
  const insert = sql.run<[string, string, string]>(`INSERT INTO main.sqlite_sequence (name, seq)
    SELECT s.name, o.seq FROM main.sqlite_schema AS s, old.sqlite_sequence AS o
    WHERE s.type = 'table' AND s.name = ? AND s.sql LIKE '%AUTOINCREMENT%' AND o.name = ?
      AND NOT EXISTS (SELECT 1 FROM main.sqlite_sequence WHERE name = ?)`);
  for (const { table, from } of plans) {
    raise(table, from);
    insert(table, from, table);
  }
}

/** Runs the statements of `indexes` in order. A database in memory splits the text into statements. */
function buildIndexes(
  db: Database,
  { tables, indexes }: Rebuild,
  onProgress: (progress: RebuildProgress) => void,
): void {
  const model = openConnection(':memory:', {});
  model.exec(tables);
  const before = readNumber(model, 'SELECT coalesce(max(rowid), 0) FROM sqlite_schema');
  model.exec(indexes);
  const statements = model
    .prepare<[number], { name: string; sql: string }>(
      'SELECT name, sql FROM sqlite_schema WHERE rowid > ? AND sql IS NOT NULL ORDER BY rowid',
    )
    .all(before);
  model.close();
  for (const [done, { name, sql }] of statements.entries()) {
    onProgress({ step: 'index', item: name, done, total: statements.length });
    db.exec(sql);
  }
}

/**
 * Throws when the new database does not have all rows of the old one. `quick_check` is omitted: it takes a tenth of the
 * whole time, and reads from the system's cache what this process has just written.
 */
function check(
  db: Database,
  plans: readonly CopyPlan[],
  rows: ReadonlyMap<string, number>,
  onProgress: (progress: RebuildProgress) => void,
): void {
  const checks: readonly (readonly [item: string, run: () => void])[] = [
    ['row counts', () => plans.forEach((plan) => checkCount(db, plan, rows))],
    ['foreign keys', () => checkForeignKeys(db)],
  ];
  for (const [done, [item, run]] of checks.entries()) {
    onProgress({ step: 'check', item, done, total: checks.length });
    run();
  }
}

function checkCount(
  db: Database,
  { table, from, count }: CopyPlan,
  oldRows: ReadonlyMap<string, number>,
): void {
  const expected = (count === countOf(from) ? oldRows.get(from) : undefined) ?? readNumber(db, count);
  const rows = readNumber(db, `SELECT count(*) FROM main.${quoted(table)}`);
  if (rows !== expected)
    throw new StoreFault(
      `The new table ${table} has ${rows} rows instead of ${expected}: nothing was changed`,
    );
}

/** Throws when the new database has more violations than the old one. */
function checkForeignKeys(db: Database): void {
  const violations = (schema: string) =>
    readNumber(db, `SELECT count(*) FROM pragma_foreign_key_check(NULL, '${schema}')`);
  const found = violations('main');
  if (found > 0 && found > violations('old'))
    throw new StoreFault(
      `${found} rows of the new database refer to rows that do not exist: nothing was changed`,
    );
}

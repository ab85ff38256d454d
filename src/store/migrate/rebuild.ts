import {
  chownSync,
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { type Database, openConnection } from '../connection.ts';
import { StoreFault } from '../failure.ts';

/**
 * Rebuilds a database into a new file with another schema. The new file is written beside the old one, checked,
 * synced and renamed over it, so that a process that is killed at any moment leaves either the old database or the
 * new one, complete. The old file stays as the copy from before the migration.
 *
 * Files, `FILE` being the database:
 *
 *     FILE.new         being built; removed by `removeLeftovers`
 *     FILE.before-…    a hard link to the old database, created before FILE.new is renamed to FILE. While both names
 *                      are links to one file the rename has not happened, and `removeLeftovers` removes the link.
 *
 * The connection locks the old database exclusively until the rename is done, and takes it out of WAL mode first:
 * no other process can have it open, and there is no log that could be applied to the new file.
 */
export interface Rebuild extends FileFormat {
  /** The schema that it creates. */
  version: number;
  /** `compact-rows`; in log lines. */
  name: string;
  /** The oldest schema that `copies` can read. Migrations between it and `version` are not run before a rebuild. */
  from: number;
  /** Creates all tables, and whatever must be in them from the start. */
  tables: string;
  /** Creates all indexes and triggers; runs after the rows have been copied. */
  indexes: string;
  /**
   * How tables of the new schema get their rows, by name; `schema` is that of the old database. A table that is not
   * named is copied as it is, by the columns that both schemas have. Tables are copied in the order in which `tables`
   * creates them, so that a copy can join what was copied before it (`main.accounts`).
   */
  copies?(schema: number): Readonly<Record<string, TableCopy>>;
  /** Tables of the old schema whose rows are not copied anywhere. */
  dropped?: readonly string[];
  /** SQL functions for `copies`; they must be deterministic. */
  functions?: Readonly<Record<string, (...values: SqlValue[]) => SqlValue>>;
}

/** What can only be set before the first table is created. */
export interface FileFormat {
  /** In bytes; default: SQLite's own, 4096. */
  pageSize?: number;
  /** Default: incremental. */
  autoVacuum?: 'none' | 'incremental';
}

export type SqlValue = string | number | bigint | Buffer | null;

export type TableCopy = ColumnCopy | SelectCopy;

/** Each row of the old table becomes one row of the new one. */
export interface ColumnCopy {
  /** The old table; default: the one of the same name. */
  from?: string;
  /**
   * Values of columns as SQL expressions over `o`, the row of the old table. Columns that are not named here have the
   * value of the old column of the same name.
   */
  columns?: Readonly<Record<string, string>>;
  /** Joins after `FROM old.<table> AS o`; each must yield exactly one row for a row of the old table. */
  join?: string;
  /** Rows for which this is not true are left out. */
  where?: string;
  /** Columns of the old table whose values are not copied. */
  dropped?: readonly string[];
}

/** Rows of the new table from any SELECT over the old database. */
export interface SelectCopy {
  /** The old table that is read in ranges of its key. */
  from: string;
  /** The columns of the range; default: the rowid or the primary key. A prefix of it, where a SELECT groups rows. */
  key?: readonly string[];
  /** Of the new table, in the order of the SELECT. */
  into: readonly string[];
  /** The SELECT; `range` is a condition on the columns of `key` of the table `o`, which it must contain. */
  select(range: string): string;
  /** SELECT of the number of rows that the new table must have. */
  count: string;
}

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
  /** Where the old database stays; null: it is not kept. */
  keepAs: string | null;
  onProgress?(progress: RebuildProgress): void;
  /** How long to wait for other processes to close the database. */
  busyTimeoutMs?: number;
  /** Rows that are copied between two calls of `onProgress`. */
  chunkRows?: number;
  /** Of a part of a database, in which rows may be missing. */
  withoutChecks?: boolean;
}

const CHUNK_ROWS = 5000;
const BUSY_TIMEOUT_MS = 5000;
/** 64 MiB: unique constraints of tables are filled in random order. Sorting for an index uses as much. */
const CACHE_KIB = 65_536;
/** SQLite opens its files beside a database under these names. */
const COMPANIONS = ['-wal', '-shm', '-journal'] as const;

export function newFileOf(file: string): string {
  return `${file}.new`;
}

/**
 * Removes what an interrupted migration left beside the database. The caller holds the daemon lock, and has no
 * connection to the database.
 */
export function removeLeftovers(file: string): string[] {
  const partial = newFileOf(file);
  // Only without hard links, between the two renames. Opening the missing database may have created an empty file.
  const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  if (size === 0 && existsSync(partial) && schemaInHeader(partial) > 0) {
    renameSync(partial, file);
    syncPath(dirname(file));
  }
  const leftovers = [partial, ...COMPANIONS.map((suffix) => partial + suffix)].filter((path) =>
    existsSync(path),
  );
  const copies = `${basename(file)}.before-`;
  const current = statSync(file, { throwIfNoEntry: false });
  for (const name of readdirSync(dirname(file))) {
    if (!name.startsWith(copies)) continue;
    const path = join(dirname(file), name);
    const { ino, dev } = statSync(path);
    // A link to the database itself is no copy: it would change with it.
    const isLink = current !== undefined && current.ino === ino && current.dev === dev;
    if (isLink || name.endsWith(PARTIAL)) leftovers.push(path);
  }
  leftovers.push(...samplesOf(file));
  for (const path of leftovers) rmSync(path, { force: true });
  return leftovers;
}

/** Parts of the database that an estimate was made with. */
export function sampleFileOf(file: string): string {
  return `${file}.sample-${process.pid}`;
}

function samplesOf(file: string): string[] {
  return readdirSync(dirname(file))
    .filter((name) => name.startsWith(`${basename(file)}.sample-`))
    .map((name) => join(dirname(file), name));
}

/** Where `PRAGMA user_version` is: https://sqlite.org/fileformat2.html §1.3. */
const USER_VERSION_AT = 60;

/**
 * The schema of a database that no connection has open: closing a file gives up the locks that this process has on it.
 * 0 for a rebuild that is not complete.
 */
export function schemaInHeader(file: string): number {
  const fd = openSync(file, 'r');
  try {
    const field = Buffer.alloc(4);
    return readSync(fd, field, 0, field.length, USER_VERSION_AT) < field.length ? 0 : field.readInt32BE();
  } finally {
    closeSync(fd);
  }
}

/** Names a copy that is not yet complete. */
export const PARTIAL = '.partial';

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
    const found = number(db, 'PRAGMA old.user_version');
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
    keepOwner(file, partial);
    onProgress({ step: 'sync', item: basename(partial), done: 0, total: 1 });
    syncPath(partial);
    swap({ file, partial, keepAs }, onProgress);
  } finally {
    // Releases the lock on the old file: only now may other processes open the database.
    db.close();
  }
  onProgress({ step: 'done', item: basename(file), done: 1, total: 1 });
}

/**
 * Sets the format of a file that has no table yet. Incremental vacuum costs 3 % more pages written, and lets
 * the retention return free pages bit by bit (docs/large-databases.md); VACUUM would exclude all writers for a minute
 * per 10 GB.
 */
export function setFileFormat(db: Database, { pageSize, autoVacuum = 'incremental' }: FileFormat = {}): void {
  if (pageSize !== undefined) db.exec(`PRAGMA page_size = ${pageSize}`);
  db.exec(`PRAGMA auto_vacuum = ${autoVacuum}`);
}

/** Nothing is flushed and nothing can be rolled back: a file that is not complete is removed. */
function openNew(rebuild: Rebuild, partial: string): Database {
  closeSync(openSync(partial, 'wx', 0o600));
  const db = openConnection(partial, { timeout: 0 });
  setFileFormat(db, rebuild);
  // Of this database only: without its name it would be the mode of the attached one, too.
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
  if (reached !== 'delete') throw new StoreFault('another process opened the database during the migration');
}

interface CopyPlan {
  table: string;
  from: string;
  key: readonly string[];
  into: readonly string[];
  select(range: string): string;
  /** SELECT of the number of rows that the new table must have. */
  count: string;
}

interface TableInfo {
  name: string;
  type: 'table' | 'virtual' | 'shadow' | 'view';
  wr: number;
}

interface ColumnInfo {
  name: string;
  pk: number;
  type: string;
}

function planCopies(db: Database, rebuild: Rebuild, schema: number): CopyPlan[] {
  const copies = rebuild.copies?.(schema) ?? {};
  const dropped = new Set(rebuild.dropped);
  const catalog = { new: tablesOf(db, 'main'), old: tablesOf(db, 'old') };
  const plans: CopyPlan[] = [];
  for (const table of catalog.new.values()) {
    const copy = copies[table.name] ?? {};
    const from = catalog.old.get(copy.from ?? table.name);
    if (from === undefined) {
      if (copies[table.name] !== undefined)
        throw new Error(`rebuild ${rebuild.version}: there is no table ${copy.from ?? table.name}`);
      continue;
    }
    plans.push('select' in copy ? selectPlan(db, table, from, copy) : columnPlan(db, table, from, copy));
  }
  const read = new Set(plans.map(({ from }) => from));
  const named = new Set([...catalog.new.keys(), ...read]);
  for (const name of Object.keys(copies))
    if (!catalog.new.has(name)) throw new Error(`rebuild ${rebuild.version}: no table ${name} is created`);
  for (const name of catalog.old.keys())
    if (!named.has(name) && !dropped.has(name))
      throw new Error(`rebuild ${rebuild.version}: table ${name} would be lost`);
  return plans;
}

/** Ordinary tables in the order of their creation. What a virtual table consists of is not copied. */
function tablesOf(db: Database, schema: 'main' | 'old'): Map<string, TableInfo> {
  const rows = db
    .prepare<[], TableInfo>(
      `SELECT l.name, l.type, l.wr FROM pragma_table_list AS l
       JOIN ${schema}.sqlite_schema AS s ON s.name = l.name AND s.type = 'table'
       WHERE l.schema = '${schema}' AND l.type = 'table' AND l.name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
       ORDER BY s.rowid`,
    )
    .all();
  return new Map(rows.map((row) => [row.name, row]));
}

function columnsOf(db: Database, schema: 'main' | 'old', table: string): ColumnInfo[] {
  return db
    .prepare<[string, string], ColumnInfo>('SELECT name, pk, type FROM pragma_table_info(?, ?) ORDER BY cid')
    .all(table, schema);
}

/** The columns by which a table is read in order; a table with a rowid is read by that. */
function keyOf(table: TableInfo, columns: readonly ColumnInfo[]): string[] {
  if (table.wr === 0) return ['rowid'];
  return columns
    .filter(({ pk }) => pk > 0)
    .sort((a, b) => a.pk - b.pk)
    .map(({ name }) => name);
}

function selectPlan(db: Database, table: TableInfo, from: TableInfo, copy: SelectCopy): CopyPlan {
  const key = copy.key ?? keyOf(from, columnsOf(db, 'old', from.name));
  return { ...copy, table: table.name, from: from.name, key };
}

function columnPlan(db: Database, table: TableInfo, from: TableInfo, copy: ColumnCopy): CopyPlan {
  const oldColumns = columnsOf(db, 'old', from.name);
  const newColumns = columnsOf(db, 'main', table.name);
  const oldNames = new Set(oldColumns.map(({ name }) => name));
  const newNames = new Set(newColumns.map(({ name }) => name));
  const given = copy.columns ?? {};
  for (const name of Object.keys(given))
    if (!newNames.has(name)) throw new Error(`table ${table.name} has no column ${name}`);
  const dropped = new Set(copy.dropped);
  for (const name of oldNames)
    if (!newNames.has(name) && !dropped.has(name))
      throw new Error(`column ${name} of table ${from.name} would be lost`);

  const values = new Map<string, string>();
  for (const { name } of newColumns) {
    const value = given[name] ?? (oldNames.has(name) ? `o.${quoted(name)}` : undefined);
    // A column that is new and has no value is left to its default.
    if (value !== undefined) values.set(quoted(name), value);
  }
  if (hasHiddenRowid(table, newColumns) && hasHiddenRowid(from, oldColumns)) values.set('rowid', 'o.rowid');
  const source = `old.${quoted(from.name)} AS o ${copy.join ?? ''}`;
  const where = copy.where === undefined ? '' : `(${copy.where}) AND `;
  const key = keyOf(from, oldColumns);
  const order = key.map((column) => `o.${quoted(column)}`).join(', ');
  return {
    table: table.name,
    from: from.name,
    key,
    into: [...values.keys()],
    select: (range) =>
      `SELECT ${[...values.values()].join(', ')} FROM ${source} WHERE ${where}${range} ORDER BY ${order}`,
    count: countOf(from.name) + (copy.where === undefined ? '' : ` AS o WHERE ${copy.where}`),
  };
}

/** Whether no column is an alias of the rowid. */
function hasHiddenRowid({ wr }: TableInfo, columns: readonly ColumnInfo[]): boolean {
  const keys = columns.filter(({ pk }) => pk > 0);
  return wr === 0 && !(keys.length === 1 && keys[0]?.type.toUpperCase() === 'INTEGER');
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
  for (const { from } of plans) if (!sizes.has(from)) sizes.set(from, number(db, countOf(from)));
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

function countOf(oldTable: string): string {
  return `SELECT count(*) FROM old.${quoted(oldTable)}`;
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

/** A number that AUTOINCREMENT gave once is never given again, also where its row is deleted. */
function copySequences(db: Database, plans: readonly CopyPlan[]): void {
  const hasSequences = (schema: string) =>
    number(db, `SELECT count(*) FROM ${schema}.sqlite_schema WHERE name = 'sqlite_sequence'`) > 0;
  if (!hasSequences('main') || !hasSequences('old')) return;
  const raise = db.prepare<[string, string]>(
    `UPDATE main.sqlite_sequence AS n SET seq = max(n.seq, o.seq)
     FROM old.sqlite_sequence AS o WHERE n.name = ? AND o.name = ?`,
  );
  const insert = db.prepare<[string, string, string]>(
    `INSERT INTO main.sqlite_sequence (name, seq)
     SELECT s.name, o.seq FROM main.sqlite_schema AS s, old.sqlite_sequence AS o
     WHERE s.type = 'table' AND s.name = ? AND s.sql LIKE '%AUTOINCREMENT%' AND o.name = ?
       AND NOT EXISTS (SELECT 1 FROM main.sqlite_sequence WHERE name = ?)`,
  );
  for (const { table, from } of plans) {
    raise.run(table, from);
    insert.run(table, from, table);
  }
}

/** One statement after the other, in the order of the text: its names and texts come from a database in memory. */
function buildIndexes(
  db: Database,
  { tables, indexes }: Rebuild,
  onProgress: (progress: RebuildProgress) => void,
): void {
  const model = openConnection(':memory:', {});
  model.exec(tables);
  const before = number(model, 'SELECT coalesce(max(rowid), 0) FROM sqlite_schema');
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
 * Throws when the new database has not all rows of the old one. `quick_check` is left out: it takes a tenth of the whole
 * time, and reads what this process has just written from the cache of the system.
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
  const expected = (count === countOf(from) ? oldRows.get(from) : undefined) ?? number(db, count);
  const rows = number(db, `SELECT count(*) FROM main.${quoted(table)}`);
  if (rows !== expected)
    throw new StoreFault(
      `the new table ${table} has ${rows} rows instead of ${expected}: nothing was changed`,
    );
}

/** Violations that the old database has, too, are no reason to refuse the new one. */
function checkForeignKeys(db: Database): void {
  const violations = (schema: string) =>
    number(db, `SELECT count(*) FROM pragma_foreign_key_check(NULL, '${schema}')`);
  const found = violations('main');
  if (found > 0 && found > violations('old'))
    throw new StoreFault(
      `${found} rows of the new database refer to rows that do not exist: nothing was changed`,
    );
}

interface Swap {
  file: string;
  partial: string;
  keepAs: string | null;
}

/** Errors of file systems without hard links. */
const NO_LINKS: ReadonlySet<string> = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK']);

/** Puts the new file in the place of the old one; `file` exists at every moment where hard links do. */
function swap({ file, partial, keepAs }: Swap, onProgress: (progress: RebuildProgress) => void): void {
  const dir = dirname(file);
  if (keepAs !== null) {
    keepOld(file, keepAs);
    syncPath(dir);
    onProgress({ step: 'linked', item: basename(keepAs), done: 1, total: 2 });
  }
  renameSync(partial, file);
  syncPath(dir);
  onProgress({ step: 'renamed', item: basename(file), done: 2, total: 2 });
}

function keepOld(file: string, keepAs: string): void {
  try {
    linkSync(file, keepAs);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    if (!NO_LINKS.has(code)) throw error;
    // Until the next rename there is no database under its name: see `removeLeftovers`.
    renameSync(file, keepAs);
  }
}

/** A migration that root starts must leave files that the daemon's user can open. */
export function keepOwner(original: string, created: string): void {
  const { uid, gid } = statSync(original);
  const made = statSync(created);
  if (process.getuid?.() === 0 && (made.uid !== uid || made.gid !== gid)) chownSync(created, uid, gid);
}

/** Flushes a file or a directory to disk. */
export function syncPath(path: string): void {
  const fd = openSync(path, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

function number(db: Database, sql: string): number {
  return db.prepare<[], number>(sql).pluck().get() ?? 0;
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

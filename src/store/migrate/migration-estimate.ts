import { closeSync, openSync, rmSync, statfsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { type Database, openConnection, readNumber } from '../database/connection.ts';
import { storageFailure } from '../database/failure.ts';
import { statements } from '../database/statements.ts';
import { cloneFile, copyBytes, sampleFileOf, syncPath } from './files.ts';
import { schemaOf } from './migrate.ts';
import { type Migration, migrationName, migrationsFrom, newestOf } from './migrations.ts';
import { rebuildDatabase } from './rebuild.ts';
import type { Rebuild } from './rebuild-plan.ts';

/**
 * The time and space of a migration. They are measured: the newest rows of every table are copied to a small database in
 * the same directory, which is then migrated, and sizes and times are multiplied by the number of rows. Without the space
 * for that, the size of the file decides.
 */
export interface MigrationEstimate {
  /** The schema of the database. */
  from: number;
  /** The schema of this program. */
  to: number;
  /** Names of the migrations: `0021-compact-rows`. */
  steps: string[];
  rebuilds: boolean;
  /** Rows of all tables; null: not measured. */
  rows: number | null;
  databaseBytes: number;
  /** The size of the database afterwards. */
  newBytes: number;
  /** Free space that the copy, the growth of the database, and sorting need. */
  neededBytes: number;
  /** Free space before the estimate. */
  freeBytes: number;
  /** Whether the copy shares blocks with the database. */
  clones: boolean;
  /** Null: not measured. */
  seconds: number | null;
  /** The directory of the database and of all files of the migration. */
  dir: string;
}

/** Maximum number of rows of each table in the sample. */
const SAMPLE_ROWS = 10_000;
/** Bytes of all rows of the sample. With indexes, and migrated in a second file, they take at most about ESTIMATE_BYTES. */
const SAMPLE_BYTES = 16 * 2 ** 20;
const ESTIMATE_BYTES = 64 * 2 ** 20;
/** Nothing is measured with less free space than this: a daemon may be using it. */
const MIN_FREE_BYTES = 4 * ESTIMATE_BYTES;
/** Of the size of the file: what a migration that was not measured may add. */
const UNMEASURED_GROWTH = 0.25;
/** Estimates deviate by a few percent. */
const MARGIN = 1.1;
const MIN_BYTES = 2 ** 20;

interface TableSize {
  rows: number;
  sampled: number;
}

/**
 * Returns null when the database has the newest schema or does not exist. Changes nothing; a daemon may be running. The
 * files of the estimate take about 64 MiB while it runs, and none is written with less than 256 MiB of free space.
 */
export function estimateMigration(file: string, migrations: readonly Migration[]): MigrationEstimate | null {
  const from = schemaOf(file);
  const steps = from === 0 ? [] : migrationsFrom(from, migrations);
  if (steps.length === 0) return null;
  const sample = sampleFileOf(file);
  removeSample(sample);
  const subject = {
    file,
    sample,
    from,
    to: newestOf(migrations),
    steps,
    freeBytes: freeBytesOf(dirname(file)),
  };
  try {
    const tables = subject.freeBytes < MIN_FREE_BYTES ? null : takeSample(file, sample);
    return tables === null ? estimateBySize(subject) : measure(subject, tables);
  } catch (error) {
    // A quota, or another program that fills the disk.
    if (storageFailure(error)?.kind !== 'full') throw error;
    return estimateBySize(subject);
  } finally {
    removeSample(sample);
  }
}

interface EstimateSubject {
  file: string;
  sample: string;
  from: number;
  to: number;
  steps: readonly Migration[];
  freeBytes: number;
}

function removeSample(sample: string): void {
  for (const suffix of ['', '-wal', '-shm', '-journal', '.new', '.new-journal', '.copy'])
    rmSync(sample + suffix, { force: true });
}

interface SchemaObject {
  type: string;
  name: string;
  sql: string;
  kind: string | null;
  wr: number | null;
}

/** Copies the newest rows of every table; null: a table has a row that is too large for the sample. */
function takeSample(file: string, sample: string): Map<string, TableSize> | null {
  closeSync(openSync(sample, 'wx', 0o600));
  const db = openConnection(sample, {});
  try {
    db.unsafeMode(true);
    db.exec('PRAGMA main.journal_mode = OFF');
    db.exec('PRAGMA synchronous = OFF');
    db.exec('PRAGMA foreign_keys = OFF');
    db.prepare<[string]>('ATTACH ? AS old').run(file);
    const version = readNumber(db, 'PRAGMA old.user_version');
    const sizes = new Map<string, TableSize>();
    db.exec('BEGIN');
    const objects = db
      .prepare<[], SchemaObject>(
        `SELECT s.type, s.name, s.sql, l.type AS kind, l.wr FROM old.sqlite_schema AS s
         LEFT JOIN pragma_table_list AS l ON l.schema = 'old' AND l.name = s.name
         WHERE s.sql IS NOT NULL AND s.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND l.type IS NOT 'shadow'
         ORDER BY s.type = 'table' DESC, s.rowid`,
      )
      .all();
    const tables = objects
      .filter(({ type, kind }) => type === 'table' && kind === 'table')
      .map(({ name, wr }) => ({ name, key: wr === 1 ? keyOf(db, name) : ['rowid'] }));
    const counts = sampleCounts(db, tables);
    for (const { type, sql } of objects) if (type === 'table') db.exec(sql);
    for (const { name, key } of tables) {
      const count = counts.get(name);
      if (count === undefined) return null;
      const sampled = db
        .prepare<[number]>(
          `INSERT INTO main."${name}" SELECT * FROM old."${name}" ${newestFirst(key)} LIMIT ?`,
        )
        .run(count.rows).changes;
      const rows = count.isAll ? sampled : estimateRows(db, name, key, sampled);
      sizes.set(name, { rows, sampled });
    }
    // Triggers would count the rows of the sample.
    for (const { type, sql } of objects) if (type !== 'table' && type !== 'trigger') db.exec(sql);
    for (const { type, sql } of objects) if (type === 'trigger') db.exec(sql);
    db.exec('COMMIT');
    db.exec(`PRAGMA main.user_version = ${version}`);
    return sizes;
  } finally {
    db.close();
  }
}

interface SampledTable {
  name: string;
  /** The columns by which the newest rows are last. */
  key: readonly string[];
}

interface SampleCount {
  rows: number;
  bytes: number;
  /** Whether the table has no further row. */
  isAll: boolean;
}

function newestFirst(key: readonly string[]): string {
  return `ORDER BY ${key.map((column) => `"${column}" DESC`).join(', ')}`;
}

/** How many rows of each table belong to the sample; large tables get equal shares of its bytes. A table whose newest row alone is too large is missing. */
function sampleCounts(db: Database, tables: readonly SampledTable[]): Map<string, SampleCount> {
  for (let limit = SAMPLE_BYTES; ; limit /= 2) {
    const counts = tables.map((table) => [table.name, newestWithin(db, table, limit)] as const);
    const total = counts.reduce((sum, [, { bytes }]) => sum + bytes, 0);
    if (total <= SAMPLE_BYTES) return new Map(counts.filter(([, { rows, isAll }]) => rows > 0 || isAll));
  }
}

/** Counts the newest rows with at most `limit` bytes. Reads the headers of rows, not their large values. */
function newestWithin(db: Database, { name, key }: SampledTable, limit: number): SampleCount {
  const sql = statements(db);
  const columns = db
    .prepare<[string], string>("SELECT name FROM pragma_table_info(?, 'old')")
    .pluck()
    .all(name);
  const size = columns.map((column) => `coalesce(octet_length("${column}"), 0) + 1`).join(' + ');
  const rows = sql.values<[], number>(
    `SELECT ${size} FROM old."${name}" ${newestFirst(key)} LIMIT ${SAMPLE_ROWS + 1}`,
  );
  const count: SampleCount = { rows: 0, bytes: 0, isAll: true };
  for (const bytes of rows()) {
    if (count.rows === SAMPLE_ROWS || count.bytes + bytes > limit) return { ...count, isAll: false };
    count.rows++;
    count.bytes += bytes;
  }
  return count;
}

/**
 * Rows of a large table. Where counting would read all of it, they are estimated by the range of its first key column,
 * because rows are deleted at the beginning of a range.
 */
function estimateRows(db: Database, table: string, key: readonly string[], sampled: number): number {
  const [first = ''] = key;
  const range = (schema: string) =>
    readNumber(
      db,
      `SELECT (SELECT max("${first}") FROM ${schema}."${table}") - (SELECT min("${first}") FROM ${schema}."${table}") + 1`,
    );
  if (first === 'rowid') return range('old');
  const isNumber = db
    .prepare<[string, string], number>(
      "SELECT type = 'INTEGER' FROM pragma_table_info(?, 'old') WHERE name = ?",
    )
    .pluck();
  const indexes = db
    .prepare<[string], number>("SELECT count(*) FROM pragma_index_list(?, 'old') WHERE origin <> 'pk'")
    .pluck();
  if (indexes.get(table) === 0 && isNumber.get(table, first) === 1)
    return Math.round((sampled / range('main')) * range('old'));
  return readNumber(db, `SELECT count(*) FROM old."${table}"`);
}

function keyOf(db: Database, table: string): string[] {
  return db
    .prepare<[string], string>("SELECT name FROM pragma_table_info(?, 'old') WHERE pk > 0 ORDER BY pk")
    .pluck()
    .all(table);
}

/** The estimate without a sample: a new file of the same size, or a copy, and some growth. */
function estimateBySize({ file, sample, from, to, steps, freeBytes }: EstimateSubject): MigrationEstimate {
  const databaseBytes = statSync(file).size;
  const rebuilds = steps.some(({ kind }) => kind === 'rebuild');
  removeSample(sample);
  const clones = cloneFile(file, sample);
  const copied = copiesFirst(steps) && !clones ? databaseBytes : 0;
  const added = databaseBytes * (UNMEASURED_GROWTH + (rebuilds ? 1 : 0));
  return {
    from,
    to,
    steps: steps.map(migrationName),
    rebuilds,
    rows: null,
    databaseBytes,
    newBytes: databaseBytes,
    neededBytes: Math.ceil(copied + added + MIN_BYTES),
    freeBytes,
    clones,
    seconds: null,
    dir: dirname(file),
  };
}

/** Steps before a rebuild, and a migration without one, need a copy: a rebuild keeps the old file instead. */
function copiesFirst(steps: readonly Migration[]): boolean {
  return steps[0]?.kind !== 'rebuild';
}

function measure(
  { file, sample, from, to, steps, freeBytes }: EstimateSubject,
  tables: ReadonlyMap<string, TableSize>,
): MigrationEstimate {
  const databaseBytes = statSync(file).size;
  const rebuild = steps.find((step) => step.kind === 'rebuild')?.rebuild ?? null;
  const before = sizesOf(sample, tables, null);
  const clones = cloneFile(sample, `${sample}.copy`);
  const copySeconds = clones
    ? 0
    : secondsOf(() => copyBytes(sample, `${sample}.copy`)) / statSync(sample).size;
  rmSync(`${sample}.copy`, { force: true });

  const migrating = secondsOf(() => {
    for (const step of steps) {
      if (step.kind === 'rebuild')
        rebuildDatabase(step.rebuild, { file: sample, keepAs: null, withoutChecks: true });
      else runInPlace(sample, step.sql, step.version);
    }
    syncPath(sample);
  });
  const after = sizesOf(sample, tables, rebuild);
  const newBytes = rebuild === null ? databaseBytes + Math.max(0, after.total - before.total) : after.total;
  const copies = copiesFirst(steps);
  const added = rebuild === null ? newBytes - databaseBytes : newBytes;
  const copied = copies && !clones ? databaseBytes : 0;
  const written = Math.max(after.total - (rebuild === null ? before.total : 0), MIN_BYTES);
  const sampleWritten = Math.max(after.sample - (rebuild === null ? before.sample : 0), MIN_BYTES / 4);
  return {
    from,
    to,
    steps: steps.map(migrationName),
    rebuilds: rebuild !== null,
    rows: [...tables.values()].reduce((sum, { rows }) => sum + rows, 0),
    databaseBytes,
    newBytes,
    neededBytes: Math.ceil(copied + (added + after.largestIndex) * MARGIN + MIN_BYTES),
    freeBytes,
    clones,
    seconds: migrating * Math.max(1, written / sampleWritten) + (copies ? copySeconds * databaseBytes : 0),
    dir: dirname(file),
  };
}

/** Free bytes of the file system of `dir` for this user. */
export function freeBytesOf(dir: string): number {
  const { bavail, bsize } = statfsSync(dir);
  return bavail * bsize;
}

function runInPlace(file: string, sql: string, version: number): void {
  const db = openConnection(file, {});
  try {
    db.exec('PRAGMA foreign_keys = OFF');
    db.exec('PRAGMA temp_store = FILE');
    db.unsafeMode(true);
    db.transaction(() => {
      db.exec(sql);
      db.exec(`PRAGMA user_version = ${version}`);
    }).immediate();
  } finally {
    db.close();
  }
}

function secondsOf(work: () => void): number {
  const began = performance.now();
  work();
  return (performance.now() - began) / 1000;
}

interface Sizes {
  /** Size of the whole database. */
  total: number;
  /** Size of the sample. */
  sample: number;
  /** The largest index of the whole database: sorting for it needs as much. */
  largestIndex: number;
}

/** The size of a table or index is that of the sample multiplied by the ratio of the numbers of rows. */
function sizesOf(sample: string, tables: ReadonlyMap<string, TableSize>, rebuild: Rebuild | null): Sizes {
  const db = openConnection(sample, {});
  try {
    const copies = rebuild?.copies?.(readNumber(db, 'PRAGMA user_version')) ?? {};
    const trees = db
      .prepare<[], { name: string; type: string; owner: string; bytes: number }>(
        `SELECT d.name, s.type, s.tbl_name AS owner, d.pgsize AS bytes FROM dbstat AS d
         JOIN sqlite_schema AS s ON s.name = d.name WHERE d.aggregate = 1`,
      )
      .all();
    const sizes: Sizes = { total: 0, sample: 0, largestIndex: 0 };
    for (const { type, owner, bytes } of trees) {
      const size = tables.get(copies[owner]?.from ?? owner);
      const scale = size === undefined || size.sampled === 0 ? 1 : size.rows / size.sampled;
      sizes.total += bytes * scale;
      sizes.sample += bytes;
      if (type === 'index') sizes.largestIndex = Math.max(sizes.largestIndex, bytes * scale);
    }
    return sizes;
  } finally {
    db.close();
  }
}

import { closeSync, openSync, rmSync, statfsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { type Database, openConnection, readNumber } from '../database/connection.ts';
import { cloneFile, copyBytes, sampleFileOf, syncPath } from './files.ts';
import { type Migration, migrationName, migrationsFrom, newestOf } from './migrations.ts';
import { rebuildDatabase } from './rebuild.ts';
import type { Rebuild } from './rebuild-plan.ts';

/**
 * The measured time and space of a migration: the newest rows of every table are copied to a small database in the same
 * directory, which is then migrated. Sizes and times are multiplied by the number of rows.
 */
export interface MigrationEstimate {
  /** The schema of the database. */
  from: number;
  /** The schema of this program. */
  to: number;
  /** Names of the migrations: `0021-compact-rows`. */
  steps: string[];
  rebuilds: boolean;
  /** Rows of all tables. */
  rows: number;
  databaseBytes: number;
  /** The size of the database afterwards. */
  newBytes: number;
  /** Free space that the copy, the growth of the database, and sorting need. */
  neededBytes: number;
  freeBytes: number;
  /** Whether the copy shares blocks with the database. */
  clones: boolean;
  seconds: number;
  /** The directory of the database and of all files of the migration. */
  dir: string;
}

/** Maximum number of rows of each table in the sample. */
const SAMPLE_ROWS = 10_000;
/** Estimates deviate by a few percent. */
const MARGIN = 1.1;
const MIN_BYTES = 2 ** 20;

interface TableSize {
  rows: number;
  sampled: number;
}

/** Returns null when the database has the newest schema or does not exist. Reads only; a daemon may be running. */
export function estimateMigration(file: string, migrations: readonly Migration[]): MigrationEstimate | null {
  const sample = sampleFileOf(file);
  removeSample(sample);
  try {
    const taken = takeSample(file, sample);
    const steps = taken.from === 0 ? [] : migrationsFrom(taken.from, migrations);
    return steps.length === 0 ? null : measure({ file, sample, ...taken, steps, to: newestOf(migrations) });
  } finally {
    removeSample(sample);
  }
}

function removeSample(sample: string): void {
  for (const suffix of ['', '-wal', '-shm', '-journal', '.new', '.new-journal', '.copy'])
    rmSync(sample + suffix, { force: true });
}

interface Sample {
  from: number;
  tables: Map<string, TableSize>;
}

function takeSample(file: string, sample: string): Sample {
  closeSync(openSync(sample, 'wx', 0o600));
  const db = openConnection(sample, {});
  try {
    db.unsafeMode(true);
    db.exec('PRAGMA main.journal_mode = OFF');
    db.exec('PRAGMA synchronous = OFF');
    db.exec('PRAGMA foreign_keys = OFF');
    db.prepare<[string]>('ATTACH ? AS old').run(file);
    const from = readNumber(db, 'PRAGMA old.user_version');
    const tables = new Map<string, TableSize>();
    db.exec('BEGIN');
    const objects = db
      .prepare<[], { type: string; name: string; sql: string; kind: string | null; wr: number | null }>(
        `SELECT s.type, s.name, s.sql, l.type AS kind, l.wr FROM old.sqlite_schema AS s
         LEFT JOIN pragma_table_list AS l ON l.schema = 'old' AND l.name = s.name
         WHERE s.sql IS NOT NULL AND s.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND l.type IS NOT 'shadow'
         ORDER BY s.type = 'table' DESC, s.rowid`,
      )
      .all();
    for (const { type, name, sql, kind, wr } of objects) {
      // Without triggers, which would count the rows of the sample.
      if (type !== 'trigger') db.exec(sql);
      if (type !== 'table' || kind !== 'table') continue;
      const key = wr === 1 ? keyOf(db, name) : ['rowid'];
      const order = key.map((column) => `"${column}" DESC`).join(', ');
      const sampled = db
        .prepare(
          `INSERT INTO main."${name}" SELECT * FROM old."${name}" ORDER BY ${order} LIMIT ${SAMPLE_ROWS}`,
        )
        .run().changes;
      const rows = sampled < SAMPLE_ROWS ? sampled : estimateRows(db, name, key, sampled);
      tables.set(name, { rows, sampled });
    }
    for (const { type, sql } of objects) if (type === 'trigger') db.exec(sql);
    db.exec('COMMIT');
    db.exec(`PRAGMA main.user_version = ${from}`);
    return { from, tables };
  } finally {
    db.close();
  }
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

interface Measurement extends Sample {
  file: string;
  sample: string;
  steps: readonly Migration[];
  to: number;
}

function measure({ file, sample, from, to, tables, steps }: Measurement): MigrationEstimate {
  const databaseBytes = statSync(file).size;
  const rebuild = steps.find((step) => step.kind === 'rebuild')?.rebuild ?? null;
  const before = sizesOf(sample, tables, null);
  const clones = cloneFile(sample, `${sample}.copy`);
  const copySeconds = clones
    ? 0
    : secondsOf(() => copyBytes(sample, `${sample}.copy`)) / statSync(sample).size;

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
  // Steps before a rebuild, and a migration without one, need a copy: a rebuild keeps the old file instead.
  const copies = steps[0]?.kind !== 'rebuild';
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
    freeBytes: freeBytesOf(dirname(file)),
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

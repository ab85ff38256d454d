import { closeSync, existsSync, openSync, renameSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { type Database, openConnection, readNumber } from '../database/connection.ts';
import { isBusy, StoreFault } from '../database/failure.ts';
import {
  copyBytes,
  copyOwner,
  keepOldFile,
  migratedFileOf,
  newFileOf,
  removeLeftovers,
  removeOlderCopies,
  syncPath,
} from './files.ts';
import {
  type Migration,
  migrationName,
  newestOf,
  readSchema,
  statementName,
  statementsOf,
  writeSchema,
} from './migrations.ts';

/*
 * A migration changes a copy of the database, which then replaces it: a process that is killed at any moment leaves either
 * the old database or the new one, complete, and the old file stays as the copy from before the migration (files.ts). The
 * copy is written without flushes and rollback, which is faster than changing the database in place would be.
 */

export interface MigrateOptions {
  file: string;
  migrations: readonly Migration[];
  onProgress?: ((progress: MigrationProgress) => void) | undefined;
  /** How long to wait for other processes to close the database. */
  busyTimeoutMs?: number;
}

export interface MigrationProgress {
  /** `copy` counts bytes, `migrate` statements of all migrations. */
  step: 'copy' | 'migrate' | 'check' | 'sync' | 'linked' | 'renamed';
  item: string;
  done: number;
  total: number;
}

export interface MigrationResult {
  from: number;
  to: number;
  /** The file with the database as it was before; null: there was no data, or nothing to migrate. */
  copy: string | null;
  /** Partial files, and copies from before earlier migrations, that were removed. */
  removed: string[];
}

const BUSY_TIMEOUT_MS = 5000;
const BUSY_RETRY_MS = 50;
/** Memory that sorting for an index may use before it uses a temporary file. */
const CACHE_KIB = 65_536;

/**
 * Migrates the database with exclusive access to it: the caller holds the daemon lock, and the migration does not begin
 * while another process has the database open. When it throws, the database is unchanged, except that it is no longer in
 * WAL mode; an error of the disk at the last rename can leave it migrated.
 */
export function migrateDatabase(options: MigrateOptions): MigrationResult {
  const { file, migrations, onProgress = () => {}, busyTimeoutMs = BUSY_TIMEOUT_MS } = options;
  const to = newestOf(migrations);
  const removed = removeLeftovers(file);
  const from = schemaOf(file, busyTimeoutMs);
  const steps = migrations.filter(({ version }) => version > from);
  if (from === 0) {
    createDatabase(file, steps);
    return { from, to, copy: null, removed };
  }
  if (steps.length === 0) return { from, to, copy: null, removed };
  const copy = `${file}.before-${to}-${Date.now()}`;
  const [partial, migrated] = [newFileOf(file), migratedFileOf(file)];
  const report = (step: MigrationProgress['step'], item: string) =>
    onProgress({ step, item, done: 0, total: 1 });
  // Closing any descriptor of a file releases all locks of this process on it: this one is closed after the connection.
  const fd = openSync(file, 'r');
  try {
    const old = openExclusively(file, busyTimeoutMs);
    try {
      copyBytes(fd, partial, (done, total) =>
        onProgress({ step: 'copy', item: basename(partial), done, total }),
      );
      const db = openUnflushed(partial);
      try {
        runSteps(db, steps, onProgress);
        report('check', 'foreign keys');
        checkForeignKeys(db, old);
      } finally {
        db.close();
      }
      copyOwner(file, partial);
      report('sync', basename(partial));
      syncPath(partial);
      renameSync(partial, migrated);
      // Without hard links, the old file loses its name: the new one must have its own on disk by then.
      syncPath(dirname(file));
      keepOldFile(file, copy);
      syncPath(dirname(file));
      report('linked', basename(copy));
      renameSync(migrated, file);
      syncPath(dirname(file));
      report('renamed', basename(file));
    } finally {
      old.close();
    }
  } catch (error) {
    removeLeftovers(file);
    throw error;
  } finally {
    closeSync(fd);
  }
  removed.push(...removeOlderCopies(file, copy));
  return { from, to, copy, removed };
}

/** The schema of a database; 0 when it does not exist. */
export function schemaOf(file: string, busyTimeoutMs = BUSY_TIMEOUT_MS): number {
  if (!existsSync(file)) return 0;
  const db = openConnection(file, { timeout: busyTimeoutMs, fileMustExist: true });
  try {
    return readSchema(db);
  } finally {
    db.close();
  }
}

/** Creates the newest schema in one transaction: a database either has it or is empty. */
function createDatabase(file: string, steps: readonly Migration[]): void {
  closeSync(openSync(file, 'a', 0o600));
  const db = openConnection(file, { timeout: BUSY_TIMEOUT_MS });
  try {
    // Writes 3 % more pages, and lets retention return free pages in portions (docs/reference/large-databases.md); VACUUM would
    // exclude all writers for a minute per 10 GB.
    db.exec('PRAGMA auto_vacuum = incremental');
    db.transaction(() => runSteps(db, steps, () => {})).immediate();
  } finally {
    db.close();
  }
}

/**
 * Takes the database out of WAL mode, which fails while any other process has it open, and locks it until the connection
 * is closed.
 */
function openExclusively(file: string, busyTimeoutMs: number): Database {
  const db = openConnection(file, { timeout: busyTimeoutMs, fileMustExist: true });
  try {
    leaveWal(db, performance.now() + busyTimeoutMs);
    db.exec('PRAGMA locking_mode = EXCLUSIVE');
    db.exec('BEGIN EXCLUSIVE');
    const mode = db.prepare<[], string>('PRAGMA journal_mode').pluck().get();
    db.exec('COMMIT');
    if (mode !== 'delete') throw new StoreFault('Another process opened the database during the migration');
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Tries until `deadline` (monotonic): SQLite's busy timeout does not apply to this statement. */
function leaveWal(db: Database, deadline: number): void {
  const sleeper = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  for (;;) {
    try {
      db.exec('PRAGMA journal_mode = DELETE');
      return;
    } catch (error) {
      if (!isBusy(error) || performance.now() >= deadline) throw error;
      Atomics.wait(sleeper, 0, 0, BUSY_RETRY_MS);
    }
  }
}

/** Opens a file without flushes and rollback: one that is not complete is removed. */
function openUnflushed(file: string): Database {
  const db = openConnection(file, { timeout: 0, fileMustExist: true });
  db.exec('PRAGMA locking_mode = EXCLUSIVE');
  // SQLite's defensive mode forbids a database without a journal.
  db.unsafeMode(true);
  db.exec('PRAGMA journal_mode = OFF');
  db.unsafeMode(false);
  db.exec('PRAGMA synchronous = OFF');
  db.exec('PRAGMA foreign_keys = OFF');
  db.exec('PRAGMA secure_delete = ON');
  db.exec('PRAGMA temp_store = FILE');
  db.exec(`PRAGMA cache_size = -${CACHE_KIB}`);
  return db;
}

function runSteps(
  db: Database,
  steps: readonly Migration[],
  onProgress: (progress: MigrationProgress) => void,
): void {
  const total = steps.flatMap(statementsOf).length;
  let done = 0;
  for (const step of steps) {
    for (const statement of statementsOf(step)) {
      const item = `${migrationName(step)}: ${statementName(statement)}`;
      onProgress({ step: 'migrate', item, done, total });
      db.exec(statement);
      done++;
    }
    writeSchema(db, step.version);
  }
}

/** Throws when the migrated database has more violations than the old one. */
function checkForeignKeys(db: Database, old: Database): void {
  const violations = (one: Database) => readNumber(one, 'SELECT count(*) FROM pragma_foreign_key_check');
  const found = violations(db);
  if (found > 0 && found > violations(old))
    throw new StoreFault(
      `${found} rows of the migrated database refer to rows that do not exist: nothing was changed`,
    );
}

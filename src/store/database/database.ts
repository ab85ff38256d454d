import { chmodSync, existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type Sqlite from 'better-sqlite3';
import type { MigrationResult } from '../migrate/migrate.ts';
import { knownMigrations, newestOf, readSchema } from '../migrate/migrations.ts';
import { formatBytes, newerSchema, SMALL_DATABASE_BYTES, upgradeDatabase } from '../migrate/upgrade.ts';
import { DATABASE_FILE, type Database, openConnection } from './connection.ts';
import { isBusy, openingFault, StoreFault } from './failure.ts';

/*
 * The database file: opening, pragmas, the check of its schema and the lock that excludes a second daemon.
 *
 * Statements in this layer use `LIMIT +?`: SQLite plans a bare `LIMIT ?` for the bound value, and therefore prepares the
 * statement again at every call.
 *
 * There are no statistics: neither ANALYZE nor `PRAGMA optimize` is run. With them plans would depend on the current data:
 * where one account owns nearly all rows, an index that begins with the account seems useless. Statements name their
 * index (INDEXED BY) or their order of tables (CROSS JOIN) where SQLite would have to guess, and
 * test/store/plans.test.ts checks every plan.
 */

export { DATABASE_FILE, type Database } from './connection.ts';

export const LOCK_FILE = 'daemon.lock';
const LOCK_TIMEOUT_MS = 5000;
/** How long opening, and each statement of a command, waits for a lock of another process. Blocks the thread. */
const BUSY_TIMEOUT_MS = 5000;

/** Creates the data directory, which only its owner may enter. */
export function prepareDataDir(dir: string): void {
  // Temporary files (sorting for an index) can be as large as the database: they belong on its file system. SQLite
  // reads the variable once.
  process.env['SQLITE_TMPDIR'] ??= resolve(dir);
  try {
    createDir(resolve(dir));
    chmodSync(dir, 0o700);
  } catch (error) {
    throw openingFault(`data.dir ${dir}`, error);
  }
}

/** Creates a directory with its parents. The `recursive` option of Node's mkdir never returns in /proc. */
function createDir(dir: string): void {
  if (existsSync(dir)) return;
  createDir(dirname(dir));
  try {
    mkdirSync(dir, { mode: 0o700 });
  } catch (error) {
    // Another process may have created it meanwhile.
    if (!existsSync(dir)) throw error;
  }
}

/**
 * Opens the database in `dir`, which is created if there is none. A small database with an older schema is migrated after
 * a copy has been written to the same directory. Throws StoreFault when the database is newer than this program or of a development
 * version, when it is older and large or a daemon is running on it, and when the file cannot be read or written.
 */
export function openDatabase(dir: string, options: OpenOptions = {}): Database {
  prepareDataDir(dir);
  const file = join(dir, DATABASE_FILE);
  try {
    return openFile(file, dir, options);
  } catch (error) {
    throw openingFault(file, error);
  }
}

export interface OpenOptions {
  /** The lock of the caller, if it is the daemon. */
  lock?: DaemonLock;
  /**
   * How long a statement blocks its thread for a lock of another process. The daemon's value is 0: its writer
   * retries without blocking the event loop.
   */
  busyTimeoutMs?: number;
  /** How long to wait for another process that migrates the schema. Default: 5 s. Blocks the thread. */
  lockTimeoutMs?: number;
  /** Called when a database with data was migrated. */
  onMigrated?(result: MigrationResult): void;
}

function openFile(file: string, dir: string, options: OpenOptions): Database {
  const db = openCurrent(file, dir, options);
  try {
    chmodSync(file, 0o600);
    db.exec('PRAGMA journal_mode = WAL');
    // Creates the write-ahead log, which is opened by its name later.
    db.exec('SELECT count(*) FROM sqlite_schema');
    // The default of WAL mode would return from a commit before it is on disk.
    db.exec('PRAGMA synchronous = FULL');
    db.exec('PRAGMA foreign_keys = ON');
    // Deleted rows are overwritten with zeros: the file contains nothing of an erased person.
    db.exec('PRAGMA secure_delete = ON');
    db.exec('PRAGMA temp_store = MEMORY');
    // 24 MiB: the pages of the messages that are being sent stay in it from the lease to the outcome. More makes sends to
    // an empty queue no faster, because the system caches the file anyway.
    db.exec('PRAGMA cache_size = -24576');
    db.exec(`PRAGMA busy_timeout = ${options.busyTimeoutMs ?? BUSY_TIMEOUT_MS}`);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Opens a read-only connection to a database that is open already. */
export function openForReading(file: string): Database {
  const db = openConnection(file, { readonly: true, fileMustExist: true, timeout: BUSY_TIMEOUT_MS });
  db.exec('PRAGMA temp_store = MEMORY');
  // 4 MiB: there are several, and the system caches the file anyway.
  db.exec('PRAGMA cache_size = -4096');
  return db;
}

/** Returns a function that prepares each statement text once, for statements that are composed from filters. */
export function preparedByText<Parameters, Row>(
  db: Database,
): (sql: string) => Sqlite.Statement<Parameters[], Row> {
  const known = new Map<string, Sqlite.Statement<Parameters[], Row>>();
  return (sql) => {
    const statement = known.get(sql) ?? db.prepare<Parameters[], Row>(sql);
    known.set(sql, statement);
    return statement;
  };
}

/** Opens a database that has the newest schema, after migrating it if it is small. */
function openCurrent(file: string, dir: string, options: OpenOptions): Database {
  const { lock: held, lockTimeoutMs = LOCK_TIMEOUT_MS, onMigrated } = options;
  const migrations = knownMigrations();
  const newest = newestOf(migrations);
  const open = (): Database | number => {
    const db = openConnection(file, { timeout: BUSY_TIMEOUT_MS });
    try {
      const found = readSchema(db);
      if (found > newest) throw newerSchema(file, { found, newest });
      if (found === newest) return db;
      db.close();
      return found;
    } catch (error) {
      db.close();
      throw error;
    }
  };
  const current = open();
  if (typeof current !== 'number') return current;
  const { size } = statSync(file);
  if (size > SMALL_DATABASE_BYTES) {
    throw new StoreFault(
      `${file} has schema ${current}, this program needs ${newest}, and the migration of ${formatBytes(size)} takes a while: run "postrider migrate" (with --dry-run first to see what it takes), or start the daemon, which migrates at its start`,
    );
  }
  const lock = held ?? lockDaemon(dir, lockTimeoutMs);
  try {
    // Another process may have migrated it while this one waited for the lock.
    const since = open();
    if (typeof since !== 'number') return since;
    const result = upgradeDatabase(dir);
    if (result.from > 0) onMigrated?.(result);
    const migrated = open();
    if (typeof migrated === 'number') throw new Error(`${file} was not migrated`);
    return migrated;
  } finally {
    if (held === undefined) lock.release();
  }
}

export interface DaemonLock {
  release(): void;
}

/**
 * Acquires the lock that excludes a second daemon from a data directory: an exclusive SQLite transaction on a separate
 * file, so that the system releases it however the process ends. Throws StoreFault when another process still holds it
 * after `timeoutMs`.
 */
export function lockDaemon(dir: string, timeoutMs = 0): DaemonLock {
  const lock = tryLockDaemon(dir, timeoutMs);
  if (lock === null) throw new StoreFault(`Another postrider daemon is running on ${dir}`);
  return lock;
}

/** Acquires the lock like `lockDaemon`; returns null when another process still holds it after `timeoutMs`. */
export function tryLockDaemon(dir: string, timeoutMs = 0): DaemonLock | null {
  prepareDataDir(dir);
  return tryLockFile(join(dir, LOCK_FILE), timeoutMs);
}

/** Locks `file` like `tryLockDaemon`; creates it. */
export function tryLockFile(file: string, timeoutMs = 0): DaemonLock | null {
  try {
    return lockFile(file, timeoutMs);
  } catch (error) {
    throw openingFault(file, error);
  }
}

function lockFile(file: string, timeoutMs: number): DaemonLock | null {
  const db = openConnection(file, { timeout: timeoutMs });
  try {
    db.exec('BEGIN EXCLUSIVE');
    return { release: () => db.close() };
  } catch (error) {
    db.close();
    if (isBusy(error)) return null;
    throw error;
  }
}

import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import Sqlite from 'better-sqlite3';
import { isBusy, openingFault, StoreFault } from './failure.ts';

/**
 * The database file: opening, pragmas, migrations and the lock that keeps a second daemon out. Nothing else
 * in the house knows that it is SQLite.
 *
 * Statements of this room say `LIMIT +?`: SQLite plans a bare `LIMIT ?` for the bound value, and so prepares
 * the statement anew at every call.
 *
 * There are no statistics: neither ANALYZE nor `PRAGMA optimize` is run. With them plans depend on the data of the day:
 * where one account owns nearly everything, an index that begins with the account looks useless. Statements name their
 * index (INDEXED BY) or their order of tables (CROSS JOIN) where SQLite would have to guess, and
 * test/store/plans.test.ts examines every plan.
 */
export type Database = Sqlite.Database;

export const DATABASE_FILE = 'postrider.db';
const LOCK_FILE = 'daemon.lock';
const MIGRATIONS = new URL('./migrations/', import.meta.url);
/** How long a command waits for another one that is bringing the schema up to date. */
const PATIENCE_MS = 5000;
/** How long opening waits for a lock of another process, and in a command every write. Blocks the thread. */
const BUSY_TIMEOUT_MS = 5000;

/** Makes the data directory, only its owner may enter. */
export function prepareDataDir(dir: string): void {
  try {
    makeDir(resolve(dir));
    chmodSync(dir, 0o700);
  } catch (error) {
    throw openingFault(`data.dir ${dir}`, error);
  }
}

/** With its parents. Node's own recursion never ends in /proc. */
function makeDir(dir: string): void {
  if (existsSync(dir)) return;
  makeDir(dirname(dir));
  try {
    mkdirSync(dir, { mode: 0o700 });
  } catch (error) {
    // Another command may have been quicker.
    if (!existsSync(dir)) throw error;
  }
}

/**
 * Opens the database in `dir`, making it if there is none, and brings its schema up to date. A copy is
 * written beside it before a migration touches data. Throws StoreFault when the database is newer than
 * this program, when it is older and a daemon is running on it, and when the file cannot be read or written.
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
  /** Held by the caller, who is the daemon. */
  lock?: DaemonLock;
  /**
   * How long a statement blocks its thread for a lock of another process. The daemon's value is 0: its writer
   * retries without blocking the event loop.
   */
  busyTimeoutMs?: number;
}

function openFile(file: string, dir: string, options: OpenOptions): Database {
  const db = keeping(new Sqlite(file, { timeout: BUSY_TIMEOUT_MS }));
  try {
    chmodSync(file, 0o600);
    // Takes effect in a new file only. It costs 3 % more pages written, and lets the retention give free pages back
    // bit by bit (docs/large-databases.md); VACUUM would exclude all writers for a minute per 10 GB.
    db.exec('PRAGMA auto_vacuum = INCREMENTAL');
    db.exec('PRAGMA journal_mode = WAL');
    // WAL's own default would answer before the commit is on disk.
    db.exec('PRAGMA synchronous = FULL');
    db.exec('PRAGMA foreign_keys = ON');
    // What is deleted is overwritten with zeros: a person who was erased is not to be found in the file.
    db.exec('PRAGMA secure_delete = ON');
    db.exec('PRAGMA temp_store = MEMORY');
    // 16 MiB: every commit looks through what is cached, and the system caches the file anyway. 64 and 256 MiB, and
    // mmap_size, showed no gain in sends beside a million messages that exceeded the noise between runs.
    db.exec('PRAGMA cache_size = -16384');
    migrate(db, dir, options.lock);
    db.exec(`PRAGMA busy_timeout = ${options.busyTimeoutMs ?? BUSY_TIMEOUT_MS}`);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/**
 * From Node 24.19 on the process ends when an object of better-sqlite3 12 is collected, and 13 needs Node 22:
 * so none ever is. All statements are made once, `exec` makes none; `pragma` and `iterate` make one at each
 * call, and are not used.
 */
const KEPT: object[] = [];

function keeping(db: Database): Database {
  const prepare = db.prepare.bind(db);
  const keepStatement = (sql: string) => {
    const statement = prepare(sql);
    KEPT.push(statement);
    return statement;
  };
  // The types of parameters and rows are the caller's word; at run time there is one `prepare`.
  db.prepare = keepStatement as Database['prepare'];
  KEPT.push(db);
  return db;
}

/** For statements that are put together from filters: each wording is prepared once. */
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

interface Migration {
  version: number;
  sql: string;
}

function migrations(): Migration[] {
  return readdirSync(MIGRATIONS)
    .filter((name) => name.endsWith('.sql'))
    .sort()
    .map((name) => ({
      version: Number(name.slice(0, 4)),
      sql: readFileSync(new URL(name, MIGRATIONS), 'utf8'),
    }));
}

function migrate(db: Database, dir: string, held: DaemonLock | undefined): void {
  const all = migrations();
  const newest = all.at(-1)?.version ?? 0;
  const version = db.prepare<[], number>('PRAGMA user_version').pluck();
  const found = version.get() ?? 0;
  if (found > newest) {
    throw new StoreFault(
      `the database is of schema ${found}, this program knows ${newest}: install the newer program`,
    );
  }
  if (found === newest) return;
  const lock = held ?? lockDaemon(dir, PATIENCE_MS);
  try {
    // Looked at again: whoever had the lock before may have done it.
    const current = version.get() ?? 0;
    if (current > 0 && current < newest)
      db.prepare('VACUUM INTO ?').run(join(dir, `${DATABASE_FILE}.before-${newest}-${Date.now()}`));
    for (const { version, sql } of all.filter(({ version }) => version > current)) {
      // SQLite's defensive mode forbids a change of the schema text.
      db.unsafeMode(sql.includes('writable_schema'));
      db.transaction(() => {
        db.exec(sql);
        db.exec(`PRAGMA user_version = ${version}`);
      }).immediate();
      db.unsafeMode(false);
    }
  } finally {
    if (held === undefined) lock.release();
  }
}

export interface DaemonLock {
  release(): void;
}

/**
 * The one-daemon lock of a data directory: an exclusive SQLite transaction on a file of its own, so that the
 * system releases it however the process ends. Throws StoreFault when it is still taken after `patienceMs`.
 */
export function lockDaemon(dir: string, patienceMs = 0): DaemonLock {
  const lock = tryLockDaemon(dir, patienceMs);
  if (lock === null) throw new StoreFault(`another postrider daemon is running on ${dir}`);
  return lock;
}

/** Null when it is still taken after `patienceMs`. */
export function tryLockDaemon(dir: string, patienceMs = 0): DaemonLock | null {
  prepareDataDir(dir);
  const file = join(dir, LOCK_FILE);
  try {
    return lockFile(file, patienceMs);
  } catch (error) {
    throw openingFault(file, error);
  }
}

function lockFile(file: string, patienceMs: number): DaemonLock | null {
  const db = keeping(new Sqlite(file, { timeout: patienceMs }));
  try {
    db.exec('BEGIN EXCLUSIVE');
    return { release: () => db.close() };
  } catch (error) {
    db.close();
    if (isBusy(error)) return null;
    throw error;
  }
}

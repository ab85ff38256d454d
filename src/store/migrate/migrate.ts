import { closeSync, existsSync, openSync, readSync, renameSync, rmSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { openConnection, readNumber } from '../database/connection.ts';
import { StoreFault } from '../database/failure.ts';
import {
  copyDatabase,
  copyOfEarlierRun,
  PARTIAL_SUFFIX,
  removeLeftovers,
  removeOlderCopies,
  syncPath,
} from './files.ts';
import { type Migration, migrationName, migrationsFrom, newestOf, type SqlMigration } from './migrations.ts';
import { leaveWal, type RebuildProgress, rebuildDatabase, setFileFormat } from './rebuild.ts';

/*
 * Migrates a database with exclusive access to it: the caller holds the daemon lock, and the migration does not begin
 * while another process has the database open. In-place migrations run in rollback-journal mode, in which new pages
 * (a new index) are written once; in WAL mode they would be written to the log and then to the file.
 *
 * A database with data is copied before it is changed in place; a rebuild keeps the old file instead. A migration that
 * was killed continues at the next start after the last step that was committed, and keeps the copy that it has.
 */

export interface MigrateOptions {
  file: string;
  migrations: readonly Migration[];
  onProgress?(progress: MigrationProgress): void;
  /** How long to wait for other processes to close the database. */
  busyTimeoutMs?: number;
  /** Rows of a rebuild that are copied between two reports of progress. */
  chunkRows?: number;
}

export type MigrationProgress =
  | RebuildProgress
  /** `backup` counts bytes, `migrate` migrations. */
  | { step: 'backup' | 'migrate'; item: string; done: number; total: number };

export interface MigrationResult {
  from: number;
  to: number;
  /** The file with the database as it was before; null: there was no data. */
  copy: string | null;
  /** Partial files, and copies from before earlier migrations, that were removed. */
  removed: string[];
}

const BUSY_TIMEOUT_MS = 5000;
/** Memory that sorting for an index may use before it uses a temporary file. */
const CACHE_KIB = 65_536;

/** Migrates the database. Throws StoreFault when it cannot begin; the database is then unchanged. */
export function migrateDatabase(options: MigrateOptions): MigrationResult {
  const { file, migrations, onProgress = () => {}, busyTimeoutMs = BUSY_TIMEOUT_MS } = options;
  const to = newestOf(migrations);
  const removed = removeLeftovers(file);
  const from = schemaOf(file, busyTimeoutMs);
  const steps = migrationsFrom(from, migrations);
  if (from === 0) {
    createDatabase(file, steps, to);
    return { from, to, copy: null, removed };
  }
  const copyTo = `${file}.before-${to}-${Date.now()}`;
  let copy = copyOfEarlierRun(file, from, to);
  let done = 0;
  const begin = (step: Migration) => {
    onProgress({ step: 'migrate', item: migrationName(step), done, total: steps.length });
    done++;
  };
  while (done < steps.length) {
    const rest = steps.slice(done);
    const [next] = rest;
    if (next?.kind === 'rebuild') {
      begin(next);
      rebuildDatabase(next.rebuild, { ...options, busyTimeoutMs, keepAs: copy === null ? copyTo : null });
    } else {
      const end = rest.findIndex(({ kind }) => kind === 'rebuild');
      const group = rest.slice(0, end < 0 ? undefined : end).filter((step) => step.kind === 'sql');
      migrateInPlace(group, {
        file,
        copyTo: copy === null ? copyTo : null,
        busyTimeoutMs,
        begin,
        onProgress,
      });
    }
    copy ??= copyTo;
  }
  if (copy !== null) removed.push(...removeOlderCopies(file, copy));
  return { from, to, copy, removed };
}

/** The schema of a database; 0 when it does not exist. */
export function schemaOf(file: string, busyTimeoutMs = BUSY_TIMEOUT_MS): number {
  if (!existsSync(file)) return 0;
  const db = openConnection(file, { timeout: busyTimeoutMs, fileMustExist: true });
  try {
    return readNumber(db, 'PRAGMA user_version');
  } finally {
    db.close();
  }
}

/** Creates the newest schema in one transaction: a database either has it or is empty. */
function createDatabase(file: string, steps: readonly Migration[], to: number): void {
  closeSync(openSync(file, 'a', 0o600));
  const db = openConnection(file, { timeout: BUSY_TIMEOUT_MS });
  try {
    const [first] = steps;
    setFileFormat(db, first?.kind === 'rebuild' ? first.rebuild : {});
    // SQLite's defensive mode forbids a change of the schema text.
    db.unsafeMode(true);
    db.transaction(() => {
      for (const step of steps) {
        if (step.kind === 'sql') db.exec(step.sql);
        else db.exec(`${step.rebuild.tables}\n${step.rebuild.indexes}`);
      }
      db.exec(`PRAGMA user_version = ${to}`);
    }).immediate();
  } finally {
    db.close();
  }
}

interface InPlaceOptions {
  file: string;
  /** The file that the database is copied to before it is changed; null: there is a copy already. */
  copyTo: string | null;
  busyTimeoutMs: number;
  begin(step: Migration): void;
  onProgress(progress: MigrationProgress): void;
}

function migrateInPlace(steps: readonly SqlMigration[], options: InPlaceOptions): void {
  const { file, copyTo, busyTimeoutMs, begin } = options;
  const open = () => {
    const db = openConnection(file, { timeout: busyTimeoutMs, fileMustExist: true });
    leaveWal(db, 'main');
    return db;
  };
  // Closing any descriptor of the file releases all locks of this process on it: this one is closed after the connection.
  const fd = openSync(file, 'r');
  try {
    let copied: Buffer | null = null;
    if (copyTo !== null) {
      open().close();
      copied = headerOf(fd);
      copyDatabase(file, copyTo + PARTIAL_SUFFIX, (done, total) =>
        options.onProgress({ step: 'backup', item: basename(copyTo + PARTIAL_SUFFIX), done, total }),
      );
    }
    const db = open();
    try {
      if (copyTo !== null && copied !== null) {
        // The copy was made without a lock. Every change of the file changes a counter in its header.
        if (!headerOf(fd).equals(copied)) {
          rmSync(copyTo + PARTIAL_SUFFIX);
          throw new StoreFault(
            `Another process changed ${file} while it was copied: stop it (fuser shows it) and start again`,
          );
        }
        renameSync(copyTo + PARTIAL_SUFFIX, copyTo);
        syncPath(dirname(file));
      }
      db.exec('PRAGMA synchronous = FULL');
      db.exec('PRAGMA foreign_keys = ON');
      db.exec('PRAGMA secure_delete = ON');
      db.exec('PRAGMA temp_store = FILE');
      db.exec(`PRAGMA cache_size = -${CACHE_KIB}`);
      for (const step of steps) {
        begin(step);
        // SQLite's defensive mode forbids a change of the schema text.
        db.unsafeMode(step.sql.includes('writable_schema'));
        db.transaction(() => {
          db.exec(step.sql);
          db.exec(`PRAGMA user_version = ${step.version}`);
        }).immediate();
        db.unsafeMode(false);
      }
    } finally {
      db.close();
    }
  } finally {
    closeSync(fd);
  }
}

/** The database header, with the file change counter: https://sqlite.org/fileformat2.html §1.3. */
function headerOf(fd: number): Buffer {
  const header = Buffer.alloc(100);
  readSync(fd, header, 0, header.length, 0);
  return header;
}

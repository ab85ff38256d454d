import { existsSync, statfsSync, statSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { SqliteError } from 'better-sqlite3';
import { programVersion } from '../../config/version.ts';
import { builtProgram } from '../../core/built-program.ts';
import { databaseFileIn, openConnection } from '../database/connection.ts';
import { StoreFault } from '../database/failure.ts';
import { copiesOf, removeLeftovers } from './files.ts';
import { type MigrationProgress, type MigrationResult, migrateDatabase, schemaOf } from './migrate.ts';
import { knownMigrations, type Migration, migrationName, newestOf } from './migrations.ts';

/*
 * When and where a database is migrated: a small one by the process that opens it, a large one by the daemon at its start,
 * in a thread, or by `postrider migrate`.
 */

/** Up to this size a migration takes a second or two. */
export const SMALL_DATABASE_BYTES = 64 * 2 ** 20;

export interface SchemaState {
  /** 0: there is no database yet. */
  found: number;
  /** The newest schema of this program. */
  newest: number;
  /** Size of the database. */
  bytes: number;
}

/** Throws StoreFault when the database is newer than this program. */
export function schemaState(dir: string, migrations: readonly Migration[] = knownMigrations()): SchemaState {
  const file = databaseFileIn(dir);
  const state = { found: schemaOf(file), newest: newestOf(migrations), bytes: sizeOf(file) };
  if (state.found > state.newest) throw newerSchema(file, state);
  return state;
}

/** The space of a migration. */
export interface MigrationEstimate {
  /** The schema of the database. */
  from: number;
  /** The schema of this program. */
  to: number;
  /** Names of the migrations: `0002-example`. */
  steps: string[];
  databaseBytes: number;
  /** Free space that the migration needs: for the new file, and as much again for tables that are written anew and for sorting. */
  neededBytes: number;
  freeBytes: number;
  /** The directory of the database and of all files of the migration. */
  dir: string;
}

/** Estimates the migration of the database in `dir`; null: it needs none. Only reads; a daemon may be running. */
export function estimateUpgrade(
  dir: string,
  migrations: readonly Migration[] = knownMigrations(),
): MigrationEstimate | null {
  const { found: from, newest: to, bytes: databaseBytes } = schemaState(dir, migrations);
  if (from === 0 || from === to) return null;
  const steps = migrations.filter(({ version }) => version > from).map(migrationName);
  const parent = dirname(databaseFileIn(dir));
  const { bavail, bsize } = statfsSync(parent);
  return {
    from,
    to,
    steps,
    databaseBytes,
    neededBytes: 2 * databaseBytes,
    freeBytes: bavail * bsize,
    dir: parent,
  };
}

/** The error for a database that a newer program has migrated. */
export function newerSchema(file: string, { found, newest }: { found: number; newest: number }): StoreFault {
  const copies = copiesOf(file).filter((copy) => copy.includes(`.before-${found}-`));
  const remedy = copies.map(
    (copy) =>
      `, or stop postrider and rename ${basename(copy)} to ${basename(file)}, which loses everything since then`,
  );
  const program = programOf(file);
  const user = program === null ? 'it was used by a newer version' : `Postrider ${program} migrated it`;
  return new StoreFault(
    `${file} has schema ${found}, this program (Postrider ${programVersion()}) knows schemas up to ${newest}: ${user}. Install that version${remedy.at(-1) ?? ''}`,
  );
}

/** The setting with the version of the program that migrated the database last. */
const MIGRATED_BY = 'migrated-by';

function recordProgram(file: string): void {
  const db = openConnection(file, { fileMustExist: true });
  try {
    db.prepare('INSERT OR REPLACE INTO settings (name, value) VALUES (?, ?)').run(
      MIGRATED_BY,
      programVersion(),
    );
  } finally {
    db.close();
  }
}

/** Null: it is not recorded, or this program cannot read where a newer one records it. */
function programOf(file: string): string | null {
  const db = openConnection(file, { readonly: true, fileMustExist: true });
  try {
    const read = db.prepare<[string], string>('SELECT value FROM settings WHERE name = ?').pluck();
    return read.get(MIGRATED_BY) ?? null;
  } catch (error) {
    if (error instanceof SqliteError) return null;
    throw error;
  } finally {
    db.close();
  }
}

export interface UpgradeOptions {
  migrations?: readonly Migration[];
  onEstimate?(estimate: MigrationEstimate): void;
  onProgress?: ((progress: MigrationProgress) => void) | undefined;
}

/**
 * Migrates the database in `dir` to the newest schema. The caller holds the daemon lock and has no connection to the
 * database. Throws StoreFault when there is not enough space; the database is then unchanged.
 */
export function upgradeDatabase(dir: string, options: UpgradeOptions = {}): MigrationResult {
  const { migrations = knownMigrations(), onEstimate, onProgress } = options;
  const file = databaseFileIn(dir);
  const removed = removeLeftovers(file);
  const estimate = estimateUpgrade(dir, migrations);
  if (estimate !== null) {
    onEstimate?.(estimate);
    requireSpace(file, estimate);
  }
  const result = migrateDatabase({ file, migrations, onProgress });
  if (result.from !== result.to) recordProgram(file);
  return { ...result, removed: [...removed, ...result.removed] };
}

function requireSpace(file: string, { from, to, neededBytes, freeBytes, dir }: MigrationEstimate): void {
  if (neededBytes <= freeBytes) return;
  const copies = copiesOf(file).map((copy) => `${basename(copy)} (${formatBytes(sizeOf(copy))})`);
  const advice =
    copies.length === 0 ? '' : `; copies from before earlier migrations may be deleted: ${copies.join(', ')}`;
  throw new StoreFault(
    `The migration from schema ${from} to ${to} needs about ${formatBytes(neededBytes)} in ${dir}, and ${formatBytes(freeBytes)} are available. Free space on this file system and start again${advice}. "postrider migrate --dry-run" shows the details`,
  );
}

function sizeOf(file: string): number {
  return existsSync(file) ? statSync(file).size : 0;
}

/** `12.7 GB`, in powers of 1000 as `df -H` and `ls` show them. */
export function formatBytes(bytes: number): string {
  const units = ['bytes', 'kB', 'MB', 'GB', 'TB'];
  const power = Math.min(Math.floor(Math.log10(Math.max(bytes, 1)) / 3), units.length - 1);
  const value = bytes / 1000 ** power;
  return `${value.toFixed(power === 0 || value >= 100 ? 0 : 1)} ${units[power]}`;
}

export interface ThreadRequest {
  dir: string;
  migrations: readonly Migration[];
  /** Not 0: the migration stops at its next report of progress. */
  stop: Int32Array;
}

export type ThreadMessage =
  | { kind: 'estimate'; estimate: MigrationEstimate }
  | { kind: 'progress'; progress: MigrationProgress }
  | { kind: 'done'; result: MigrationResult }
  | { kind: 'stopped' }
  | { kind: 'failed'; message: string; code: string | undefined; isFault: boolean };

export interface ThreadedUpgradeOptions {
  onEstimate(estimate: MigrationEstimate): void;
  onProgress(progress: MigrationProgress): void;
  /** Ends the migration at its next report of progress; the next start begins again. */
  signal?: AbortSignal | undefined;
}

/**
 * Migrates like `upgradeDatabase`, in a thread, so that the event loop is not blocked. Rejects with an AbortError when
 * `signal` is aborted. A thread that runs a statement cannot be stopped; the process may be killed at any moment.
 */
export async function upgradeInThread(
  dir: string,
  options: ThreadedUpgradeOptions,
): Promise<MigrationResult> {
  const { signal } = options;
  const stop = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const request: ThreadRequest = { dir, migrations: knownMigrations(), stop };
  const thread = new Worker(builtProgram('store/migrate/migration-thread'), {
    workerData: request,
  });
  const onAbort = () => Atomics.store(stop, 0, 1);
  if (signal?.aborted === true) onAbort();
  signal?.addEventListener('abort', onAbort);
  try {
    return await new Promise((resolve, reject) => {
      thread.on('message', (message: ThreadMessage) => {
        if (message.kind === 'estimate') options.onEstimate(message.estimate);
        else if (message.kind === 'progress') options.onProgress(message.progress);
        else if (message.kind === 'done') resolve(message.result);
        else if (message.kind === 'stopped')
          reject(new DOMException('the migration was stopped', 'AbortError'));
        else reject(errorOf(message));
      });
      thread.on('error', reject);
      thread.on('exit', (code) => reject(new Error(`the migration thread ended with code ${code}`)));
    });
  } finally {
    signal?.removeEventListener('abort', onAbort);
    await thread.terminate();
  }
}

/** The error of the thread with its class and code, which decide whether it is reported as one the operator can fix. */
function errorOf({ message, code, isFault }: Extract<ThreadMessage, { kind: 'failed' }>): Error {
  if (isFault) return new StoreFault(message);
  return Object.assign(new Error(message), code === undefined ? {} : { code });
}

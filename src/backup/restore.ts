import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import { type Clock, iso } from '../core/clock.ts';
import { errorCode, errorText } from '../core/errors.ts';
import { OperatorFault } from '../core/operator-fault.ts';
import type { DatabaseContent } from '../store/backup/content.ts';
import { type Copier, createCopier } from '../store/backup/copy.ts';
import { ensureLocation, markAsCopy, takeOver } from '../store/backup/identity.ts';
import { DATABASE_FILE, type DaemonLock, openDatabase, tryLockDaemon } from '../store/database/database.ts';
import { createWriter } from '../store/database/writer.ts';
import { formerKeyFiles, keyFingerprint, readMasterKey } from '../store/master-key.ts';
import type { MigrationProgress } from '../store/migrate/migrate.ts';
import { knownMigrations, newestOf } from '../store/migrate/migrations.ts';
import { formatBytes, schemaState, upgradeDatabase } from '../store/migrate/upgrade.ts';
import { createTables, type Tables } from '../store/tables.ts';
import { copyFile, flush, freeBytes, giveToOwner, renameDurably, statIfExists } from './files.ts';
import { findBackup } from './folder.ts';
import { DATA_FOLDER, DATABASE_COPY, KEY_COPY, type Manifest, readManifest } from './manifest.ts';

/*
 * A restore never sends a message twice: it holds whatever was not finished at the time of the backup, because the original
 * may have sent it afterwards. Until everything is held, the database is marked as a copy, and no daemon starts with it.
 */

/** What a restore needs. */
export interface RestoreOptions {
  /** Must contain no database. */
  dataDir: string;
  masterKeyFile: string;
  clock: Clock;
  /** Bytes that were copied. */
  onProgress?(done: number, total: number): void;
  onMigration?: ((progress: MigrationProgress) => void) | undefined;
}

export interface Restored {
  dataDir: string;
  /** Null: restored from a copy of the database. */
  manifest: Manifest | null;
  /** The file `masterKeyFile` does not exist, and the database needs a master key. */
  isKeyMissing: boolean;
  held: Held;
}

/** What a restore holds. */
export interface Held {
  messages: number;
  webhookDeliveries: number;
  campaigns: number;
  /** The new generation: higher than that of the original. */
  generation: number;
}

/** Name of the database until the copy is complete. */
const RESTORING = `${DATABASE_FILE}.restoring`;
const SPARE_BYTES = 64 * 2 ** 20;
/** Rows in one transaction: no daemon is running. */
const BATCH_SIZE = 5000;
const UNLIMITED = Number.POSITIVE_INFINITY;

/** Restores a backup, or the newest one in a directory. Throws OperatorFault; the data directory has no database then. */
export async function restoreBackup(path: string, options: RestoreOptions): Promise<Restored> {
  const backup = await findBackup(path);
  const manifest = await readManifest(backup);
  requireKnownSchema(manifest, `The backup was written by version ${manifest.version}`);
  return inEmptyDirectory(options, manifest.bytes, async (dir) => {
    requireRightKey(manifest, options.masterKeyFile);
    let done = 0;
    const onBytes = (bytes: number) => {
      done += bytes;
      options.onProgress?.(done, manifest.bytes);
    };
    // The database is last: where it exists, everything else does.
    const files = manifest.files.toSorted(
      (one, two) => Number(one.path === DATABASE_COPY) - Number(two.path === DATABASE_COPY),
    );
    for (const { path: from, sha256, mode } of files) {
      const to = targetOf(from, dir, options.masterKeyFile);
      if (to === null || (await isSame(to, sha256, options))) continue;
      await removedOnFailure(to, async () => {
        const copied = await copyFile(join(backup, from), to, { mode, onBytes });
        if (copied.sha256 !== sha256)
          throw new OperatorFault(
            `${join(backup, from)} is damaged: its checksum does not match. Run "postrider backup verify ${backup}" and restore another backup`,
          );
      });
      await flush(dirname(to));
    }
    return { manifest, keyFingerprint: manifest.keyFingerprint };
  });
}

/**
 * Restores a copy of the database that another program made, such as Litestream: `file` and, if it exists, its
 * write-ahead log.
 */
export async function restoreCopy(file: string, options: RestoreOptions): Promise<Restored> {
  const source = resolve(file);
  const status = await statIfExists(source);
  if (status?.isFile() !== true) throw new OperatorFault(`${source} is not a file`);
  const logBytes = (await statIfExists(`${source}-wal`))?.size ?? 0;
  return inEmptyDirectory(options, status.size + logBytes, async (dir) => {
    const to = join(dir, RESTORING);
    const copier = copierOf(options);
    let content: DatabaseContent;
    try {
      await copier.copy(source, to, { maxLogBytes: UNLIMITED }).catch((error: unknown) => {
        throw copyFault(source, error);
      });
      content = await copier.seal(to);
    } finally {
      await copier.close();
    }
    requireKnownSchema(content, 'The database was used by a newer version');
    requireRightKey(content, options.masterKeyFile);
    await flush(to);
    return { manifest: null, keyFingerprint: content.keyFingerprint };
  });
}

/** SQLite reads a database with a write-ahead log only where it can create files next to it. */
function copyFault(source: string, error: unknown): unknown {
  if (
    !['SQLITE_READONLY_DIRECTORY', 'SQLITE_READONLY_CANTINIT', 'SQLITE_CANTOPEN'].includes(errorCode(error))
  )
    return error;
  return new OperatorFault(
    `${source} cannot be read (${errorText(error)}): make it readable and its directory writable for the user that runs postrider, or copy the file and its -wal file to a directory of this user`,
    { cause: error },
  );
}

/**
 * Holds what is not finished in the database of a data directory, and takes over from the original. For databases that
 * were copied into the directory, and for restores that were interrupted.
 */
export async function holdUnfinished(options: RestoreOptions): Promise<Held> {
  const lock = lockFor(options.dataDir);
  try {
    const held = await complete(options, lock);
    await giveToOwner(options.dataDir);
    return held;
  } finally {
    lock.release();
  }
}

interface Copied extends Pick<DatabaseContent, 'keyFingerprint'> {
  manifest: Manifest | null;
}

/** `fill` writes the files, and the database as RESTORING. */
async function inEmptyDirectory(
  options: RestoreOptions,
  bytes: number,
  fill: (dir: string) => Promise<Copied>,
): Promise<Restored> {
  const dir = resolve(options.dataDir);
  const lock = lockFor(dir);
  try {
    const file = join(dir, DATABASE_FILE);
    if ((await statIfExists(file)) !== null)
      throw new OperatorFault(
        `${file} exists: a restore never overwrites a database. Specify an empty directory with --data, or move the database away. If a restore was interrupted, complete it with "postrider restore hold"`,
      );
    const free = await freeBytes(dir);
    if (bytes + SPARE_BYTES > free)
      throw new OperatorFault(
        `${dir} has ${formatBytes(free)} of free space, and the restore needs about ${formatBytes(bytes + SPARE_BYTES)}: free space or specify another directory with --data`,
      );
    await removeRestoring(dir);
    let copied: Copied;
    try {
      copied = await fill(dir);
      await renameDurably(join(dir, RESTORING), file);
    } catch (error) {
      await removeRestoring(dir);
      throw error;
    }
    const held = await complete(options, lock);
    await giveToOwner(dir);
    const isKeyMissing =
      copied.keyFingerprint !== null && (await statIfExists(options.masterKeyFile)) === null;
    return { dataDir: dir, manifest: copied.manifest, isKeyMissing, held };
  } finally {
    lock.release();
  }
}

/** The caller holds the lock. Can be repeated after an interruption. */
async function complete(options: RestoreOptions, lock: DaemonLock): Promise<Held> {
  const { dataDir: dir, clock, onMigration } = options;
  const { found, newest } = schemaState(dir);
  if (found === 0) throw new OperatorFault(`There is no database in ${dir}`);
  if (found < newest) upgradeDatabase(dir, { onProgress: onMigration });
  const location = ensureLocation(dir);
  const db = openDatabase(dir, { lock });
  const writer = createWriter(db, createTables(db));
  try {
    // No daemon starts until the last unit of work is committed.
    await writer.run(markAsCopy);
    let messages = 0;
    for (let after: number | null = 0; after !== null; ) {
      const from: number = after;
      const step = await writer.run((tx) => tx.restoreHolds.holdMessages(from, BATCH_SIZE));
      messages += step.changed;
      after = step.next;
    }
    let webhookDeliveries = 0;
    for (let changed = -1; changed !== 0; webhookDeliveries += changed)
      changed = await writer.run((tx) => tx.restoreHolds.holdDeliveries(BATCH_SIZE));
    return await writer.run((tx: Tables) => {
      const now = clock.now();
      const restored = `The service was restored from a backup at ${iso(now)}`;
      const campaigns = tx.restoreHolds.pauseCampaigns(
        `${restored}. Members after the backup may have received this campaign already`,
        now,
      );
      tx.restoreHolds.pauseSequences(
        `${restored}. People may have received further messages of this sequence after the backup`,
        now,
      );
      tx.restoreHolds.skipNumbers();
      takeOver(tx, location, now);
      return { messages, webhookDeliveries, campaigns, generation: tx.settings.generation() };
    });
  } finally {
    await writer.close();
    db.close();
  }
}

function lockFor(dir: string): DaemonLock {
  const lock = tryLockDaemon(resolve(dir));
  if (lock === null) throw new OperatorFault(`A daemon is running on ${dir}: stop it first`);
  return lock;
}

function copierOf({ onProgress }: RestoreOptions): Copier {
  return createCopier({
    bytesPerSecond: UNLIMITED,
    onProgress: (kind, { done, total }) => (kind === 'copy' ? onProgress?.(done, total) : undefined),
  });
}

/** The path to which a file of a backup is restored; null: the operator installs it. */
function targetOf(path: string, dir: string, masterKeyFile: string): string | null {
  if (path === DATABASE_COPY) return join(dir, RESTORING);
  if (path === KEY_COPY) return masterKeyFile;
  const inData = relative(DATA_FOLDER, path);
  return inData.startsWith('..') ? null : join(dir, inData);
}

/** Whether the file already exists with this content. Throws OperatorFault when its content differs. */
async function isSame(file: string, sha256: string, options: RestoreOptions): Promise<boolean> {
  if ((await statIfExists(file)) === null) return false;
  const copier = copierOf(options);
  try {
    if ((await copier.hash(file)) === sha256) return true;
  } finally {
    await copier.close();
  }
  throw new OperatorFault(
    `${file} exists with different content: a restore never overwrites a file. Move it away`,
  );
}

/** Removes the file when it was not written completely. */
async function removedOnFailure(file: string, write: () => Promise<void>): Promise<void> {
  try {
    await write();
  } catch (error) {
    await rm(file, { force: true });
    throw error;
  }
}

async function removeRestoring(dir: string): Promise<void> {
  for (const suffix of ['', '-wal', '-shm', '-journal'])
    await rm(join(dir, `${RESTORING}${suffix}`), { force: true });
}

function requireKnownSchema({ schema }: { schema: number }, by: string): void {
  const newest = newestOf(knownMigrations());
  if (schema > newest)
    throw new OperatorFault(
      `${by}: its database has schema ${schema}, this version knows schemas up to ${newest}. Install that version or a newer one`,
    );
}

/** Throws OperatorFault when the file exists with the key of another database: it is neither used nor overwritten. */
function requireRightKey(
  { keyFingerprint: needed }: Pick<DatabaseContent, 'keyFingerprint'>,
  file: string,
): void {
  if (needed === null || !existsSync(file) || keyFingerprint(readMasterKey(file)) === needed) return;
  const former = formerKeyFiles(file).find((each) => keyFingerprint(readMasterKey(each)) === needed);
  if (former !== undefined)
    throw new OperatorFault(
      `${file} is not the master key of this backup: it was replaced later. Move it away, and copy ${former} to ${file}`,
    );
  throw new OperatorFault(
    `${file} is not the master key of this backup: restore the right one, or move it away. If it is lost, see docs/lost-master-key.md`,
  );
}

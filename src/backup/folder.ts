import { readdir, rename, rm } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { DAY, iso } from '../core/clock.ts';
import { errorCode, errorText } from '../core/errors.ts';
import { OperatorFault } from '../core/operator-fault.ts';
import { type DaemonLock, tryLockFile } from '../store/database/database.ts';
import { statIfExists } from './files.ts';
import { MANIFEST_FILE, type Manifest, ManifestFault, readManifest } from './manifest.ts';

/* The directory of the backups, each of which is a directory `postrider-20260131T033000Z`. */

const NAME = /^postrider-\d{8}T\d{6}Z(-\d+)?$/;
export const PARTIAL = '.partial';
const REMOVED = '.removed';
const LOCK_FILE = '.backup.lock';

/** A backup, or a directory with the name of a backup that is incomplete or damaged (`fault`). */
export interface ListedBackup {
  path: string;
  manifest: Manifest | null;
  fault: string | null;
}

/** Prevents other processes from writing backups to `dir`. Throws OperatorFault when one is being written. */
export function lockFolder(dir: string): DaemonLock {
  const lock = tryLockFile(join(dir, LOCK_FILE));
  if (lock === null)
    throw new OperatorFault(`Another backup is being written to ${dir}: try again when it is complete`);
  return lock;
}

/** Returns an unused path in `dir` for a backup of the time `at` (epoch ms). */
export async function nameOfBackup(dir: string, at: number): Promise<string> {
  const name = join(dir, `postrider-${iso(at).slice(0, 19).replaceAll(/[-:]/g, '')}Z`);
  for (let n = 1; ; n++) {
    const path = n === 1 ? name : `${name}-${n}`;
    if ((await statIfExists(path)) === null) return path;
  }
}

/** Removes the directories of interrupted backups and removals. The caller holds the lock of `dir`. */
export async function removePartials(dir: string): Promise<void> {
  for (const name of await readdir(dir)) {
    const isPartial = name.startsWith('.postrider-') && (name.endsWith(PARTIAL) || name.endsWith(REMOVED));
    if (isPartial) await rm(join(dir, name), { recursive: true, force: true });
  }
}

/** Why a directory cannot be read. */
const PROBLEMS: Readonly<Record<string, string | undefined>> = {
  ENOENT: 'does not exist: correct the path',
  ENOTDIR: 'is not a directory: specify the directory of the backups',
  EACCES: 'cannot be read: permission denied',
};

/** The backups in a directory, newest first. Throws OperatorFault when it cannot be read. */
export async function listBackups(dir: string): Promise<ListedBackup[]> {
  const names = await readdir(dir).catch((error: unknown) => {
    const problem = PROBLEMS[errorCode(error)] ?? `cannot be read: ${errorText(error)}`;
    throw new OperatorFault(`${dir} ${problem}`, { cause: error });
  });
  const found = names.filter((name) => NAME.test(name)).toSorted();
  const listed = found.toReversed().map((name) => describe(join(dir, name)));
  return Promise.all(listed);
}

async function describe(path: string): Promise<ListedBackup> {
  try {
    return { path, manifest: await readManifest(path), fault: null };
  } catch (error) {
    if (!(error instanceof ManifestFault)) throw error;
    return { path, manifest: null, fault: error.message };
  }
}

/** Returns `path` if it is a backup, otherwise the newest complete backup in it. Throws OperatorFault. */
export async function findBackup(path: string): Promise<string> {
  const dir = resolve(path);
  if ((await statIfExists(join(dir, MANIFEST_FILE))) !== null) return dir;
  // A backup without its manifest must not be replaced by another one.
  const listed = NAME.test(basename(dir)) ? [] : await listBackups(dir);
  const newest = listed.find(({ manifest }) => manifest !== null);
  if (newest === undefined)
    throw new OperatorFault(
      `${dir} is not a complete backup, and contains none: ${MANIFEST_FILE} is missing`,
    );
  return newest.path;
}

export interface BackupRetention {
  /** Minimum number of complete backups of the instance that remain. */
  keep: number;
  /** Age in days at which further backups are removed; null: immediately. */
  keepDays: number | null;
}

/**
 * Removes old complete backups of the instance, and returns their paths. Backups of other instances and incomplete or damaged
 * ones are neither counted nor removed.
 */
export async function removeOldBackups(
  dir: string,
  instanceId: string,
  { keep, keepDays }: BackupRetention,
  now: number,
): Promise<string[]> {
  const lock = lockFolder(dir);
  try {
    const own = (await listBackups(dir)).filter(({ manifest }) => manifest?.instanceId === instanceId);
    const old = own.slice(keep).filter(({ manifest }) => {
      const createdAt = Date.parse(manifest?.createdAt ?? '');
      return keepDays === null || createdAt < now - keepDays * DAY;
    });
    for (const { path } of old) {
      // Renamed first: an interrupted removal leaves no directory that looks like a backup.
      const aside = join(dir, `.${basename(path)}${REMOVED}`);
      await rename(path, aside);
      await rm(aside, { recursive: true, force: true });
    }
    return old.map(({ path }) => path);
  } finally {
    lock.release();
  }
}

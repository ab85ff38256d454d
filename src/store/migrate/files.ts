import {
  chownSync,
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  linkSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';

/*
 * Files of a migration, in the directory of the database; `FILE` is the database:
 *
 *     FILE.new              the copy that is migrated
 *     FILE.migrated         the same when it is complete and on disk, until it is renamed to FILE
 *     FILE.before-TO-MS     the database as it was before the migration to schema TO, at epoch ms MS: a hard link that is
 *                           created before FILE.migrated is renamed. While both names are links to one file the rename
 *                           has not happened, and `removeLeftovers` removes the link.
 */

/** SQLite's own files of a database, by suffix. */
const COMPANIONS = ['-wal', '-shm', '-journal'] as const;
const COPY_CHUNK_BYTES = 4 * 2 ** 20;

/** In the same directory as the database, so that the rename is atomic. */
export function newFileOf(file: string): string {
  return `${file}.new`;
}

export function migratedFileOf(file: string): string {
  return `${file}.migrated`;
}

/**
 * Removes the files that an interrupted migration left in the directory of the database, and returns their paths. The
 * caller holds the daemon lock, and has no connection to the database.
 */
export function removeLeftovers(file: string): string[] {
  const migrated = migratedFileOf(file);
  // An interruption between the two renames of a file system without hard links. Opening the missing database may have
  // created an empty file.
  const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  if (size === 0 && existsSync(migrated)) {
    renameSync(migrated, file);
    syncPath(dirname(file));
  }
  const partial = newFileOf(file);
  const leftovers = [migrated, partial, ...COMPANIONS.map((suffix) => partial + suffix)].filter((path) =>
    existsSync(path),
  );
  const current = statSync(file, { throwIfNoEntry: false });
  for (const path of copiesOf(file)) {
    const { ino, dev } = statSync(path);
    // A link to the database itself is no copy: it would change with it.
    if (current !== undefined && current.ino === ino && current.dev === dev) leftovers.push(path);
  }
  for (const path of leftovers) rmSync(path, { force: true });
  return leftovers;
}

/** Receives the number of bytes that were copied, and the size of the file. */
export type CopyProgress = (done: number, total: number) => void;

/** Copies the open file `source` to a new file. */
export function copyBytes(source: number, to: string, onProgress: CopyProgress): void {
  const target = openSync(to, 'wx', 0o600);
  try {
    const total = fstatSync(source).size;
    const chunk = Buffer.allocUnsafe(COPY_CHUNK_BYTES);
    for (let done = 0; ; ) {
      onProgress(done, total);
      const size = readSync(source, chunk, 0, chunk.length, done);
      if (size === 0) break;
      for (let at = 0; at < size; ) at += writeSync(target, chunk, at, size - at);
      done += size;
    }
  } finally {
    closeSync(target);
  }
}

/** Paths of the copies from before migrations, oldest first. */
export function copiesOf(file: string): string[] {
  const prefix = `${basename(file)}.before-`;
  return readdirSync(dirname(file))
    .filter((name) => name.startsWith(prefix) && /^\d+-\d+$/.test(name.slice(prefix.length)))
    .sort((a, b) => createdAt(a) - createdAt(b))
    .map((name) => join(dirname(file), name));
}

/** When a copy was created, in epoch ms, by its name. */
function createdAt(copy: string): number {
  return Number(copy.slice(copy.lastIndexOf('-') + 1));
}

/** Removes all copies but `newest`; returns their paths. */
export function removeOlderCopies(file: string, newest: string): string[] {
  const older = copiesOf(file).filter((path) => path !== newest);
  for (const path of older) rmSync(path);
  return older;
}

/** Errors of file systems without hard links. */
const NO_LINKS: ReadonlySet<string> = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK']);

/** Gives the old database the name `keepAs`: as a hard link next to `file` where the file system has them, else instead. */
export function keepOldFile(file: string, keepAs: string): void {
  try {
    linkSync(file, keepAs);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    if (!NO_LINKS.has(code)) throw error;
    // Until the next rename there is no database under its name: see `removeLeftovers`.
    renameSync(file, keepAs);
  }
}

/** Sets the owner of a file that root created to that of the original, so that the daemon's user can open it. */
export function copyOwner(original: string, created: string): void {
  const { uid, gid } = statSync(original);
  const status = statSync(created);
  if (process.getuid?.() === 0 && (status.uid !== uid || status.gid !== gid)) chownSync(created, uid, gid);
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

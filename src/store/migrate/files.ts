import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  copyFileSync,
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
 *     FILE.new              the new database of a rebuild, until it is complete and renamed to FILE
 *     FILE.before-TO-MS     the database as it was before the migration to schema TO, at epoch ms MS. A rebuild creates
 *                           it as a hard link before FILE.new is renamed to FILE. While both names are links to one
 *                           file the rename has not happened, and `removeLeftovers` removes the link.
 *     FILE.before-….partial the same copy while it is being written
 *     FILE.sample-PID       the rows that an estimate is measured on
 */

/** SQLite's own files of a database, by suffix. */
const COMPANIONS = ['-wal', '-shm', '-journal'] as const;
const COPY_CHUNK_BYTES = 4 * 2 ** 20;

/** In the same directory as the database, so that the rename is atomic. */
export function newFileOf(file: string): string {
  return `${file}.new`;
}

/**
 * Removes the files that an interrupted migration left in the directory of the database, and returns their paths. The
 * caller holds the daemon lock, and has no connection to the database.
 */
export function removeLeftovers(file: string): string[] {
  const partial = newFileOf(file);
  // An interruption between the two renames of a file system without hard links. Opening the missing database may have
  // created an empty file.
  const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  if (size === 0 && existsSync(partial) && schemaInHeader(partial) > 0) {
    renameSync(partial, file);
    syncPath(dirname(file));
  }
  const leftovers = [partial, ...COMPANIONS.map((suffix) => partial + suffix)].filter((path) =>
    existsSync(path),
  );
  const copies = `${basename(file)}.before-`;
  const current = statSync(file, { throwIfNoEntry: false });
  for (const name of readdirSync(dirname(file))) {
    if (!name.startsWith(copies)) continue;
    const path = join(dirname(file), name);
    const { ino, dev } = statSync(path);
    // A link to the database itself is no copy: it would change with it.
    const isLink = current !== undefined && current.ino === ino && current.dev === dev;
    if (isLink || name.endsWith(PARTIAL_SUFFIX)) leftovers.push(path);
  }
  leftovers.push(...samplesOf(file));
  for (const path of leftovers) rmSync(path, { force: true });
  return leftovers;
}

/** The file with the rows that this process measures an estimate on. */
export function sampleFileOf(file: string): string {
  return `${file}.sample-${process.pid}`;
}

function samplesOf(file: string): string[] {
  return readdirSync(dirname(file))
    .filter((name) => name.startsWith(`${basename(file)}.sample-`))
    .map((name) => join(dirname(file), name));
}

/** Where `PRAGMA user_version` is: https://sqlite.org/fileformat2.html §1.3. */
const USER_VERSION_AT = 60;

/**
 * The schema of a database to which this process has no connection: closing a file releases all locks that the process has
 * on it. 0 for a rebuild that is not complete.
 */
export function schemaInHeader(file: string): number {
  const fd = openSync(file, 'r');
  try {
    const field = Buffer.alloc(4);
    return readSync(fd, field, 0, field.length, USER_VERSION_AT) < field.length ? 0 : field.readInt32BE();
  } finally {
    closeSync(fd);
  }
}

/** Suffix of a copy that is not complete. */
export const PARTIAL_SUFFIX = '.partial';

/** Errors of file systems that cannot share blocks between files. */
const NO_REFLINKS: ReadonlySet<string> = new Set([
  'ENOTSUP',
  'EOPNOTSUPP',
  'ENOSYS',
  'ENOTTY',
  'EINVAL',
  'EXDEV',
  'EPERM',
]);

/** Copies a file that nothing writes to, sharing its blocks where the file system can do that, and flushes the copy. */
export function copyDatabase(file: string, to: string, onProgress: CopyProgress): void {
  if (!cloneFile(file, to)) copyBytes(file, to, onProgress);
  chmodSync(to, 0o600);
  copyOwner(file, to);
  syncPath(to);
}

/** Returns false where the file system cannot share blocks between files. */
export function cloneFile(file: string, to: string): boolean {
  try {
    copyFileSync(file, to, constants.COPYFILE_FICLONE_FORCE | constants.COPYFILE_EXCL);
    return true;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    if (!NO_REFLINKS.has(code)) throw error;
    rmSync(to, { force: true });
    return false;
  }
}

/** Receives the number of bytes that were copied, and the size of the file. */
export type CopyProgress = (done: number, total: number) => void;

/** Copies block by block, and flushes the copy to disk. */
export function copyBytes(file: string, to: string, onProgress: CopyProgress = () => {}): void {
  const source = openSync(file, 'r');
  const target = openSync(to, 'wx', 0o600);
  try {
    const total = fstatSync(source).size;
    const chunk = Buffer.allocUnsafe(COPY_CHUNK_BYTES);
    let done = 0;
    for (;;) {
      onProgress(done, total);
      const size = readSync(source, chunk, 0, chunk.length, done);
      if (size === 0) break;
      for (let at = 0; at < size; ) at += writeSync(target, chunk, at, size - at);
      done += size;
    }
    fsyncSync(target);
  } finally {
    closeSync(target);
    closeSync(source);
  }
}

/**
 * The copy that an interrupted migration to schema `to` made; null: there is none. A copy with the schema `from` of the
 * database may be older than its data, and is not used.
 */
export function copyOfEarlierRun(file: string, from: number, to: number): string | null {
  const copies = copiesOf(file).filter((path) => path.includes(`.before-${to}-`));
  return copies.findLast((path) => schemaInHeader(path) < from) ?? null;
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

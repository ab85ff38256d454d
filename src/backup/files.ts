import { createHash } from 'node:crypto';
import type { Stats } from 'node:fs';
import { lchown, mkdir, open, readdir, realpath, rename, stat, statfs } from 'node:fs/promises';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { unitOf } from '../config/installations.ts';
import type { Config } from '../config/schema.ts';
import { errorCode, errorText } from '../core/errors.ts';
import { OperatorFault } from '../core/operator-fault.ts';
import { LOCATION_FILE } from '../store/backup/identity.ts';
import { IMPORT_FOLDER } from '../store/contacts/background-imports.ts';
import { DATABASE_FILE } from '../store/database/database.ts';
import { RESERVE_FILE } from '../store/reserve.ts';
import { CONFIG_FOLDER, DATA_FOLDER } from './manifest.ts';

/** A file next to the database that belongs in a backup. */
export interface ExtraFile {
  /** Absolute. */
  source: string;
  /** Path in the backup, with `/`. */
  path: string;
  bytes: number;
}

/** Files next to the database; more are not those of an operator. */
const MAX_FILES = 10_000;
/** Nested directories below data.dir. */
const MAX_DEPTH = 16;
const CHUNK_BYTES = 2 ** 20;

/**
 * The files of the data directory except the database, its copies, its locks, the reserve and the master key with former
 * ones; the configuration file and the files that it names. Symbolic links and special files are omitted, uploads that wait
 * for their import, and the directories `except`, which contain backups. Throws OperatorFault when there are too many files
 * or levels of directories.
 */
export async function extraFiles(config: Config, except: readonly string[]): Promise<ExtraFile[]> {
  const found: ExtraFile[] = [];
  const add = (source: string, path: string, bytes: number) => {
    if (found.length >= MAX_FILES)
      throw new OperatorFault(
        `${config.data.dir} contains more than ${MAX_FILES} files that do not belong to postrider: move them elsewhere`,
      );
    found.push({ source, path, bytes });
  };
  const omitted = new Set([...except, join(config.data.dir, IMPORT_FOLDER)].map((dir) => resolve(dir)));
  const masterKey = resolve(config.data.masterKeyFile);
  /** Also former keys, and a new one while it replaces the key: `master.key.1`, `master.key.new`. */
  const isMasterKey = (path: string) => path === masterKey || path.startsWith(`${masterKey}.`);
  const walk = async (dir: string, depth: number): Promise<void> => {
    if (omitted.has(resolve(dir))) return;
    if (depth > MAX_DEPTH)
      throw new OperatorFault(
        `${dir} is more than ${MAX_DEPTH} directories below ${config.data.dir} and would be missing in the backup: move it elsewhere`,
      );
    for (const entry of await readdir(dir, { withFileTypes: true })) {
      const path = join(dir, entry.name);
      if (entry.isDirectory()) await walk(path, depth + 1);
      else if (entry.isFile() && !isMasterKey(path) && !(depth === 0 && isOwn(entry.name)))
        add(path, pathInBackup(DATA_FOLDER, relative(config.data.dir, path)), (await stat(path)).size);
    }
  };
  await walk(config.data.dir, 0);
  for (const [index, source] of configFiles(config).entries()) {
    const status = await statIfExists(source);
    if (status?.isFile() !== true || (await isInside(source, config.data.dir))) continue;
    add(
      source,
      `${CONFIG_FOLDER}/${index === 0 ? '' : `${index}-`}${source.slice(source.lastIndexOf(sep) + 1)}`,
      status.size,
    );
  }
  return found;
}

/** Files in the data directory that a restore creates, or that are valid for this directory only. */
function isOwn(name: string): boolean {
  return (
    name === DATABASE_FILE ||
    name.startsWith(`${DATABASE_FILE}-`) ||
    name.startsWith(`${DATABASE_FILE}.`) ||
    name.startsWith(LOCATION_FILE) ||
    name === RESERVE_FILE ||
    name.startsWith('daemon.lock') ||
    // The master key while it is being created, and other programs' temporary files.
    name.startsWith('.')
  );
}

/** The configuration file first, then the files that it names. */
function configFiles(config: Config): string[] {
  const { file, api, mx, submission, public: pages, delivery, secondary } = config;
  const named = [
    api.metricsKeyFile,
    config.console.oidc.clientSecretFile,
    mx.tls.certificateFile,
    mx.tls.keyFile,
    submission.tls.certificateFile,
    submission.tls.keyFile,
    pages.tls.directoryCaFile,
    delivery.tls.caFile,
    ...delivery.routes.map(({ passwordFile }) => passwordFile),
    ...delivery.egress.map(({ proxyPasswordFile }) => proxyPasswordFile),
    secondary.type === 'relay' ? secondary.passwordFile : undefined,
  ];
  const others = new Set(named.filter((name) => name !== undefined));
  return [file ?? '', ...others];
}

async function isInside(file: string, dir: string): Promise<boolean> {
  const from = relative(await realpath(dir), await realpath(file));
  return from !== '' && !from.startsWith('..');
}

function pathInBackup(folder: string, path: string): string {
  return `${folder}/${path.split(sep).join('/')}`;
}

/**
 * Copies a file, which must not be a database in use, flushes the copy and returns its SHA-256. Rejects when `to` exists.
 * `mode`: permission bits of the copy.
 */
export async function copyFile(
  source: string,
  to: string,
  { mode, signal, onBytes }: { mode: number; signal?: AbortSignal; onBytes?(bytes: number): void },
): Promise<{ bytes: number; sha256: string }> {
  await createDirectory(dirname(to));
  const from = await open(source, 'r');
  try {
    const target = await open(to, 'wx', mode);
    try {
      const digest = createHash('sha256');
      const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
      let bytes = 0;
      for (;;) {
        signal?.throwIfAborted();
        const { bytesRead } = await from.read(chunk, 0, chunk.length, bytes);
        if (bytesRead === 0) break;
        const part = chunk.subarray(0, bytesRead);
        digest.update(part);
        await target.writeFile(part);
        bytes += bytesRead;
        onBytes?.(bytesRead);
      }
      await target.sync();
      return { bytes, sha256: digest.digest('hex') };
    } finally {
      await target.close();
    }
  } finally {
    await from.close();
  }
}

/**
 * Creates a directory with its parents, accessible to their owner only, and flushes their names. The `recursive` option of
 * Node's mkdir never returns in /proc. `configFile`: of the daemon that may need the permission of its unit.
 */
export async function createDirectory(dir: string, configFile: string | null = null): Promise<void> {
  if ((await statIfExists(dir)) !== null) return;
  const parent = dirname(dir);
  await createDirectory(parent, configFile);
  try {
    await mkdir(dir, { mode: 0o700 });
  } catch (error) {
    // Another process may have created it meanwhile.
    if ((await statIfExists(dir)) === null)
      throw new OperatorFault(`${dir} cannot be created: ${errorText(error)}${remedyOf(error, configFile)}`, {
        cause: error,
      });
  }
  await flush(parent);
}

/** The unit makes all directories read-only that it does not name. */
function remedyOf(error: unknown, configFile: string | null): string {
  return errorCode(error) === 'EROFS'
    ? `. If systemd runs the daemon, add it to ReadWritePaths= of the unit: systemctl edit ${unitOf(configFile)}`
    : '';
}

/** Null when the file does not exist. */
export async function statIfExists(path: string): Promise<Stats | null> {
  try {
    return await stat(path);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  }
}

/** Writes a new file and flushes it. */
export async function writeNewFile(file: string, text: string, mode = 0o600): Promise<void> {
  const target = await open(file, 'wx', mode);
  try {
    await target.writeFile(text);
    await target.sync();
  } finally {
    await target.close();
  }
}

/** Flushes a file, or the names in a directory. */
export async function flush(path: string): Promise<void> {
  const file = await open(path, 'r');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Flushes every directory below `dir`, and `dir`. */
export async function flushTree(dir: string): Promise<void> {
  for (const entry of await readdir(dir, { withFileTypes: true }))
    if (entry.isDirectory()) await flushTree(join(dir, entry.name));
  await flush(dir);
}

/**
 * Changes the owner of everything in a directory to that of the directory, if the process runs as root: the daemon runs as
 * another user.
 */
export async function giveToOwner(dir: string): Promise<void> {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = await stat(dir);
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  for (const entry of entries) await lchown(join(entry.parentPath, entry.name), uid, gid);
}

/** Renames and flushes the directory, so that the new name survives a power failure. */
export async function renameDurably(from: string, to: string): Promise<void> {
  await rename(from, to);
  await flush(dirname(to));
}

/** Bytes that are available to this user on the file system of an existing path. */
export async function freeBytes(path: string): Promise<number> {
  const { bavail, bsize } = await statfs(path);
  return bavail * bsize;
}

/**
 * Bytes of the whole file system of an existing path, used or not; `createBackup` derives the space that must stay
 * free.
 */
export async function sizeOfFileSystem(path: string): Promise<number> {
  const { blocks, bsize } = await statfs(path);
  return blocks * bsize;
}

import { mkdir, rm, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import type { Config } from '../config/schema.ts';
import { programVersion } from '../config/version.ts';
import { type Clock, iso } from '../core/clock.ts';
import { OperatorFault } from '../core/operator-fault.ts';
import type { DatabaseContent } from '../store/backup/content.ts';
import { createCopier, type TaskKind, type TaskProgress } from '../store/backup/copy.ts';
import { databaseFileIn } from '../store/database/connection.ts';
import { formatBytes } from '../store/migrate/upgrade.ts';
import {
  copyFile,
  createDirectory,
  extraFiles,
  flush,
  flushTree,
  freeBytes,
  renameDurably,
  sizeOfFileSystem,
  statIfExists,
  writeNewFile,
} from './files.ts';
import { lockFolder, nameOfBackup, PARTIAL, removePartials } from './folder.ts';
import {
  type BackupFile,
  DATABASE_COPY,
  FORMAT,
  formatManifest,
  KEY_COPY,
  MANIFEST_FILE,
  type Manifest,
} from './manifest.ts';

export interface CreateOptions {
  config: Config;
  /** Directory of the backups, created if it does not exist. */
  dir: string;
  includeKey: boolean;
  clock: Clock;
  onProgress?(progress: BackupProgress): void;
  signal?: AbortSignal;
}

export interface BackupProgress {
  /** What is being done: `copy`, `seal` (complete the copy) or `hash`. */
  step: TaskKind;
  /** Bytes of this step. */
  done: number;
  total: number;
}

export interface CreatedBackup {
  /** Absolute path. */
  path: string;
  manifest: Manifest;
}

/** The write-ahead log may grow by this much while the database is copied: it cannot restart before the copy ends. */
export const MAX_LOG_GROWTH_BYTES = 4 * 2 ** 30;
/** Space for the file system's own data, the log of the copy and the manifest. */
const SPARE_BYTES = 64 * 2 ** 20;
/** What is left free on the file system of the data directory during a copy. */
const MIN_FREE_SHARE = 0.05;

/**
 * Writes a backup of the data directory into a new directory in `dir`. The daemon may be running. Throws OperatorFault
 * when there is too little space, another backup is being written to `dir`, or the load is too high to copy the database.
 * After a failure there is no backup.
 */
export async function createBackup(options: CreateOptions): Promise<CreatedBackup> {
  const { config, clock } = options;
  const dir = resolve(options.dir);
  const file = databaseFileIn(config.data.dir);
  await createDirectory(dir, config.file);
  const lock = lockFolder(dir);
  try {
    await removePartials(dir);
    const extra = await extraFiles(config, [dir, config.backup.dir]);
    const databaseBytes = (await stat(file)).size + ((await statIfExists(`${file}-wal`))?.size ?? 0);
    await requireSpace(dir, databaseBytes + extra.reduce((sum, { bytes }) => sum + bytes, 0));
    const createdAt = clock.now();
    const path = await nameOfBackup(dir, createdAt);
    const partial = join(dirname(path), `.${basename(path)}${PARTIAL}`);
    await mkdir(partial, { mode: 0o700 });
    try {
      const { content, sha256 } = await copyDatabase(file, join(partial, DATABASE_COPY), options);
      const files: BackupFile[] = [
        {
          path: DATABASE_COPY,
          bytes: (await stat(join(partial, DATABASE_COPY))).size,
          sha256,
          mode: 0o600,
          source: file,
        },
      ];
      const key = options.includeKey ? [{ source: config.data.masterKeyFile, path: KEY_COPY }] : [];
      for (const { source, path: to } of [...extra, ...key]) {
        const mode = (await stat(source)).mode & 0o777;
        const copied = await copyFile(source, join(partial, to), { mode, ...signalOf(options) });
        files.push({ path: to, ...copied, mode, source });
      }
      const manifest: Manifest = {
        format: FORMAT,
        version: programVersion(),
        schema: content.schema,
        createdAt: iso(createdAt),
        hostname: config.hostname,
        instanceId: content.instanceId,
        generation: content.generation,
        includesKey: options.includeKey,
        keyFingerprint: content.keyFingerprint,
        counts: content.counts,
        files,
        bytes: files.reduce((sum, { bytes }) => sum + bytes, 0),
      };
      await writeNewFile(join(partial, MANIFEST_FILE), formatManifest(manifest));
      await flushTree(partial);
      options.signal?.throwIfAborted();
      await renameDurably(partial, path);
      return { path, manifest };
    } catch (error) {
      await rm(partial, { recursive: true, force: true });
      throw error;
    }
  } finally {
    lock.release();
  }
}

/** Copies the database into a new file, and returns its content and its SHA-256. */
async function copyDatabase(
  file: string,
  to: string,
  options: CreateOptions,
): Promise<{ content: DatabaseContent; sha256: string }> {
  const stop = new AbortController();
  const signals = options.signal === undefined ? [stop.signal] : [stop.signal, options.signal];
  const source = dirname(file);
  const minFree = MIN_FREE_SHARE * (await sizeOfFileSystem(source));
  const watch = (step: TaskKind, progress: TaskProgress) => {
    options.onProgress?.({ step, done: progress.done, total: progress.total });
    if (step !== 'copy') return;
    if (progress.logGrowth > MAX_LOG_GROWTH_BYTES) {
      stop.abort(
        new OperatorFault(
          `The write-ahead log has grown by ${formatBytes(progress.logGrowth)} during the copy, which was stopped: create backups at a time with less load, or on a faster disk`,
        ),
      );
      return;
    }
    void freeBytes(source).then((free) => {
      if (free < minFree && progress.logGrowth > SPARE_BYTES)
        stop.abort(
          new OperatorFault(
            `${source} has only ${formatBytes(free)} of free space left, and the write-ahead log grows during the copy, which was stopped: free space, or create backups at a time with less load`,
          ),
        );
    }, stop.abort.bind(stop));
  };
  const copier = createCopier({
    bytesPerSecond: options.config.backup.bytesPerSecond,
    onProgress: watch,
    signal: AbortSignal.any(signals),
  });
  try {
    await copier.copy(file, to, { maxLogBytes: MAX_LOG_GROWTH_BYTES });
    const content = await copier.seal(to);
    await flush(to);
    return { content, sha256: await copier.hash(to) };
  } finally {
    await copier.close();
  }
}

async function requireSpace(dir: string, bytes: number): Promise<void> {
  const free = await freeBytes(dir);
  const needed = bytes + SPARE_BYTES;
  if (needed > free)
    throw new OperatorFault(
      `${dir} has ${formatBytes(free)} of free space, and a backup needs about ${formatBytes(needed)}: free space or choose another directory`,
    );
}

function signalOf({ signal }: CreateOptions): { signal?: AbortSignal } {
  return signal === undefined ? {} : { signal };
}

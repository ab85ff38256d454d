import { randomBytes } from 'node:crypto';
import { open, rm, stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';

/** Owner and mode of a file; null: it does not exist. */
export interface FileFacts {
  uid: number;
  /** Permission bits. */
  mode: number;
  bytes: number;
}

export interface DiskFacts {
  freeBytes: number;
  /** Total and free; null where the file system has no fixed number of inodes. */
  inodes: { total: number; free: number } | null;
  /** Magic number of the file system, statfs(2). */
  type: number;
}

/** Rejects with the error of the system, except for a missing file. */
export async function fileFacts(file: string): Promise<FileFacts | null> {
  try {
    const { uid, mode, size } = await stat(file);
    return { uid, mode: mode & 0o7777, bytes: size };
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  }
}

/**
 * Reads statfs(2) of the file system that contains `dir`; `freeBytes` excludes blocks reserved for root. Rejects with
 * the error of the system.
 */
export async function diskFacts(dir: string): Promise<DiskFacts> {
  const { bavail, bsize, files, ffree, type } = await statfs(dir);
  return {
    freeBytes: bavail * bsize,
    inodes: files === 0 ? null : { total: files, free: ffree },
    type: type >>> 0,
  };
}

const FLUSHES = 9;
const BLOCK = Buffer.alloc(4096);

/** The median time of fdatasync after a write of 4 KiB in `dir`, in ms. The file is removed. Rejects with the error of the system. */
export async function measureFlush(dir: string, signal: AbortSignal): Promise<number> {
  const file = join(dir, `.doctor-${randomBytes(6).toString('hex')}`);
  const handle = await open(file, 'wx', 0o600);
  try {
    const times: number[] = [];
    for (let n = 0; n < FLUSHES; n++) {
      signal.throwIfAborted();
      await handle.write(BLOCK);
      const began = performance.now();
      await handle.datasync();
      times.push(performance.now() - began);
    }
    return times.sort((one, two) => one - two)[FLUSHES >> 1] ?? 0;
  } finally {
    await handle.close();
    await rm(file, { force: true });
  }
}

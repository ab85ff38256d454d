import { randomBytes } from 'node:crypto';
import { unlinkSync } from 'node:fs';
import { open, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode } from '../core/errors.ts';
import { StoreFault, storageFailure } from './database/failure.ts';
import type { Unit, Writer } from './database/writer.ts';

/**
 * Space for the operator's commands when the disk is full: a file in the data directory that a command removes when the
 * database cannot grow. The daemon creates it again when there is enough space.
 */
export const RESERVE_FILE = 'reserve';
export const RESERVE_BYTES = 16 * 1024 * 1024;
/** Random, because file systems that compress would otherwise reserve nothing. */
const CHUNK_BYTES = 1024 * 1024;

/** Creates the file unless it is complete. Rejects when there is not enough space; nothing of it is left then. */
export async function ensureReserve(dir: string): Promise<void> {
  const path = join(dir, RESERVE_FILE);
  const size = await stat(path).then(
    (found) => found.size,
    (error: unknown) => {
      if (errorCode(error) === 'ENOENT') return 0;
      throw error;
    },
  );
  if (size === RESERVE_BYTES) return;
  const file = await open(path, 'w', 0o600);
  try {
    for (let written = 0; written < RESERVE_BYTES; written += CHUNK_BYTES)
      await file.writeFile(randomBytes(CHUNK_BYTES));
    await file.sync();
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  } finally {
    await file.close();
  }
}

/** Removes the file; false: there was none. */
export function releaseReserve(dir: string): boolean {
  try {
    unlinkSync(join(dir, RESERVE_FILE));
    return true;
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return false;
    throw error;
  }
}

/** Opens a database, once more when the disk is full and `release` has made space. */
export function openWithReserve<T>(open: () => T, release: () => boolean): T {
  try {
    return open();
  } catch (error) {
    if (storageFailure(error instanceof StoreFault ? error.cause : error)?.kind !== 'full' || !release())
      throw error;
    return open();
  }
}

/** A writer that repeats a unit of work once when the disk is full and `release` has made space. */
export function withReserve(writer: Writer, release: () => boolean): Writer {
  return {
    ...writer,
    run: async <T>(unit: Unit<T>, share?: string): Promise<T> => {
      try {
        return await writer.run(unit, share);
      } catch (error) {
        if (storageFailure(error)?.kind !== 'full' || !release()) throw error;
        return writer.run(unit, share);
      }
    },
  };
}

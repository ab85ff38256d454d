import { randomBytes } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { type Random, systemRandom } from '../core/random.ts';
import { createSeal, type Seal } from '../core/seal.ts';
import type { Context } from './context.ts';
import { prepareDataDir } from './database/database.ts';
import { openingFault, StoreFault } from './database/failure.ts';
import { syncPath } from './migrate/files.ts';
import type { Tables } from './tables.ts';

/*
 * The key file: 32 random bytes that seal all secrets in the database. It is created once, readable only by the daemon's
 * user, and never replaced: with another key the secrets cannot be read.
 */

const KEY_BYTES = 32;
/** The setting with the fingerprint of the key that sealed this database. */
export const FINGERPRINT = 'master-key-fingerprint';

/**
 * Returns the key in `file`, which is created if it does not exist. Throws StoreFault. Files in systemd's
 * `credentialsDirectory` may be group-readable: systemd protects the directory.
 */
export function loadMasterKey(file: string, random: Random, credentialsDirectory?: string): Buffer {
  if (!exists(file)) createKeyFile(file, random);
  try {
    return readKeyFile(file, dirname(file) === credentialsDirectory);
  } catch (error) {
    throw openingFault(`data.masterKeyFile ${file}`, error);
  }
}

/**
 * Throws a StoreFault when `file` exists and a start could not use it. Whether it is the key of the database is not
 * examined.
 */
export function verifyMasterKeyFile(file: string, credentialsDirectory?: string): void {
  if (!exists(file)) return;
  try {
    readKeyFile(file, dirname(file) === credentialsDirectory);
  } catch (error) {
    throw openingFault(`data.masterKeyFile ${file}`, error);
  }
}

/** Reads the key in `file`, whatever its permissions, to compare it with a backup. Throws StoreFault when it is not a key. */
export function readMasterKey(file: string): Buffer {
  try {
    return readKeyFile(file, true);
  } catch (error) {
    throw openingFault(file, error);
  }
}

/** Identifies a key without revealing it; stored in the database that it seals. */
export function keyFingerprint(key: Buffer): string {
  return createSeal(key, systemRandom).derive('fingerprint').toString('hex');
}

function readKeyFile(file: string, fromSystemd: boolean): Buffer {
  const fd = openSync(file, 'r');
  try {
    const status = fstatSync(fd);
    const { mode } = status;
    if (!status.isFile()) throw new StoreFault(`${file} is not a file`);
    if ((mode & 0o077) !== 0 && !fromSystemd) {
      const shown = (mode & 0o777).toString(8);
      throw new StoreFault(`${file} can be read by others (mode ${shown}): run chmod 600 ${file}`);
    }
    const key = readFileSync(fd);
    if (key.length !== KEY_BYTES) {
      throw new StoreFault(
        `${file} must have ${KEY_BYTES} bytes, but has ${key.length}: check that data.masterKeyFile names the right file. If the key is lost, see docs/lost-master-key.md`,
      );
    }
    return key;
  } finally {
    closeSync(fd);
  }
}

/**
 * Opens the seal of a database: loads its key, and creates one only for a database that has no key yet. Throws StoreFault
 * when the key file is missing or belongs to another database: its secrets could not be read. `credentialsDirectory`:
 * `$CREDENTIALS_DIRECTORY`.
 */
export async function openSeal(
  { random, tables, writer }: Pick<Context, 'random' | 'tables' | 'writer'>,
  { file, credentialsDirectory }: { file: string; credentialsDirectory?: string | undefined },
): Promise<Seal> {
  requireExisting(file, tables);
  const seal = createSeal(loadMasterKey(file, random, credentialsDirectory), random);
  const fingerprint = seal.derive('fingerprint').toString('hex');
  const stored = await writer.run((tables) => {
    const before = tables.settings.get(FINGERPRINT);
    if (before === null) tables.settings.put(FINGERPRINT, fingerprint);
    return before ?? fingerprint;
  });
  if (stored !== fingerprint) throw otherKey(file);
  return seal;
}

/**
 * Throws the StoreFault that `openSeal` would throw; creates and stores nothing. `tables`: null: the database is not open,
 * and only the file is examined.
 */
export function requireMasterKey(
  file: string,
  tables: Pick<Tables, 'settings'> | null,
  credentialsDirectory: string | undefined,
): void {
  if (tables !== null) requireExisting(file, tables);
  if (!exists(file)) return;
  // The file exists, so that nothing random is needed.
  const key = loadMasterKey(file, systemRandom, credentialsDirectory);
  const stored = tables?.settings.get(FINGERPRINT) ?? null;
  if (stored !== null && stored !== keyFingerprint(key)) throw otherKey(file);
}

function requireExisting(file: string, { settings }: Pick<Tables, 'settings'>): void {
  if (exists(file) || settings.get(FINGERPRINT) === null) return;
  throw new StoreFault(
    `${file} is missing: restore the key file that belongs to this database. If systemd gives the key to the service (LoadCredential), run the command with systemd-run and the same credential (docs/install.md). If the key is lost, see docs/lost-master-key.md`,
  );
}

function otherKey(file: string): StoreFault {
  return new StoreFault(
    `${file} is not the key that this database was sealed with: restore the right one. If it is lost, see docs/lost-master-key.md`,
  );
}

/** Throws StoreFault when a directory of the path may not be entered: it is then unknown whether the file exists. */
function exists(file: string): boolean {
  try {
    return statSync(file, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    throw openingFault(`data.masterKeyFile ${file}`, error);
  }
}

/**
 * Writes the key to a temporary file, flushes it, and links it to its name, which fails when another process was faster:
 * two processes that start at the same time use one key, and no process reads an incomplete one.
 */
function createKeyFile(file: string, random: Random): void {
  const dir = dirname(file);
  if (!existsSync(dir)) prepareDataDir(dir);
  const temporary = join(dir, `.${basename(file)}.${randomBytes(6).toString('hex')}`);
  try {
    const fd = openSync(temporary, 'wx', 0o600);
    try {
      writeSync(fd, random.bytes(KEY_BYTES));
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    linkIfAbsent(temporary, file);
    syncPath(dir);
  } catch (error) {
    throw openingFault(`data.masterKeyFile ${file}`, error);
  } finally {
    if (existsSync(temporary)) unlinkSync(temporary);
  }
}

function linkIfAbsent(from: string, to: string): void {
  try {
    linkSync(from, to);
  } catch (error) {
    const taken = error instanceof Error && 'code' in error && error.code === 'EEXIST';
    if (!taken) throw error;
  }
}

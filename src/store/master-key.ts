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
import type { Random } from '../core/random.ts';
import { createSeal, type Seal } from '../core/seal.ts';
import { prepareDataDir } from './database.ts';
import { openingFault, StoreFault } from './failure.ts';
import type { Tables } from './tables.ts';
import type { Writer } from './writer.ts';

/**
 * The key file: 32 random bytes that everything secret in the database is sealed with. It is made once, is
 * nobody's but the daemon's to read, and is never replaced: with another key the database cannot be read.
 */
const KEY_BYTES = 32;
/** Where the database keeps what tells its own key from another. */
const FINGERPRINT = 'master-key-fingerprint';

/**
 * The key in `file`, made if there is none. Throws StoreFault, in words for the operator.
 * `credentialsDirectory` is systemd's: it keeps others out itself, and shows its files group-readable.
 */
export function loadMasterKey(file: string, random: Random, credentialsDirectory?: string): Buffer {
  if (!exists(file)) makeKeyFile(file, random);
  try {
    return readKeyFile(file, dirname(file) === credentialsDirectory);
  } catch (error) {
    throw openingFault(`data.masterKeyFile ${file}`, error);
  }
}

function readKeyFile(file: string, fromSystemd: boolean): Buffer {
  const fd = openSync(file, 'r');
  try {
    const status = fstatSync(fd);
    const { mode } = status;
    if (!status.isFile()) throw new StoreFault(`${file} is not a file`);
    if ((mode & 0o077) !== 0 && !fromSystemd) {
      const shown = (mode & 0o777).toString(8);
      throw new StoreFault(`${file} can be read by others (mode ${shown}): chmod 600 it`);
    }
    const key = readFileSync(fd);
    if (key.length !== KEY_BYTES) {
      throw new StoreFault(
        `${file} must hold ${KEY_BYTES} bytes, it has ${key.length}: is it the right file?`,
      );
    }
    return key;
  } finally {
    closeSync(fd);
  }
}

export interface SealDeps {
  file: string;
  random: Random;
  tables: Tables;
  writer: Writer;
  /** `$CREDENTIALS_DIRECTORY` */
  credentialsDirectory?: string | undefined;
}

/**
 * Opens the seal of a database: loads its key, and makes one only for a database that has none yet. Throws
 * StoreFault when the key is gone or is that of another database: going on would write what nobody can read.
 */
export async function openSeal(deps: SealDeps): Promise<Seal> {
  const { file, random, tables, writer } = deps;
  if (!exists(file) && tables.settings.get(FINGERPRINT) !== null) {
    throw new StoreFault(`${file} is missing: put back the key file that belongs to this database`);
  }
  const seal = createSeal(loadMasterKey(file, random, deps.credentialsDirectory), random);
  const fingerprint = seal.derive('fingerprint').toString('hex');
  const kept = await writer.run((tables) => {
    const before = tables.settings.get(FINGERPRINT);
    if (before === null) tables.settings.put(FINGERPRINT, fingerprint);
    return before ?? fingerprint;
  });
  if (kept !== fingerprint) {
    throw new StoreFault(`${file} is not the key that this database was sealed with: put back the right one`);
  }
  return seal;
}

/** A directory on the way that may not be entered is an error of its own, and not a missing file. */
function exists(file: string): boolean {
  try {
    return statSync(file, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    throw openingFault(`data.masterKeyFile ${file}`, error);
  }
}

/**
 * Written aside, flushed, and then linked to its name, which fails when another process was quicker: so two
 * that start at once agree on one key, and none is ever seen half written.
 */
function makeKeyFile(file: string, random: Random): void {
  const dir = dirname(file);
  if (!existsSync(dir)) prepareDataDir(dir);
  const aside = join(dir, `.${basename(file)}.${randomBytes(6).toString('hex')}`);
  try {
    const fd = openSync(aside, 'wx', 0o600);
    try {
      writeSync(fd, random.bytes(KEY_BYTES));
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    linkQuietly(aside, file);
    flushDirectory(dir);
  } catch (error) {
    throw openingFault(`data.masterKeyFile ${file}`, error);
  } finally {
    if (existsSync(aside)) unlinkSync(aside);
  }
}

function linkQuietly(from: string, to: string): void {
  try {
    linkSync(from, to);
  } catch (error) {
    const taken = error instanceof Error && 'code' in error && error.code === 'EEXIST';
    if (!taken) throw error;
  }
}

function flushDirectory(dir: string): void {
  const fd = openSync(dir, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

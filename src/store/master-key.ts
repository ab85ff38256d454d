import { randomBytes } from 'node:crypto';
import {
  closeSync,
  existsSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  linkSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { type Random, systemRandom } from '../core/random.ts';
import { createSeal, FIRST_KEY, type MasterKeys, type Seal } from '../core/seal.ts';
import type { Context } from './context.ts';
import { prepareDataDir } from './database/database.ts';
import { openingFault, StoreFault } from './database/failure.ts';
import { syncPath } from './migrate/files.ts';
import type { Tables } from './tables.ts';

/*
 * The key file: 32 random bytes that seal all secrets in the database. It is created once, readable only by the daemon's
 * user, and replaced by `key rotate-master` only: with another key the secrets cannot be read.
 *
 * A key that was replaced is stored in the database, sealed by the newest one: it opens what is not sealed again yet, and
 * verifies links of sent mail. Until the key file has the newest key, that one is stored, too, sealed by the key before it.
 */

const KEY_BYTES = 32;
/** The number is one byte. */
const MAX_KEYS = 255;
/** The setting with the fingerprint of the key that sealed this database. */
export const FINGERPRINT = 'master-key-fingerprint';

/** The setting with the keys that were replaced (`Ring`, JSON). */
const RING = 'master-keys';

interface Ring {
  /** The number of the newest key. */
  newest: number;
  /** Former keys by number, sealed by the newest. */
  former: Record<string, string>;
  /** The newest key, sealed by the one before it, while the key file may have that one. */
  next?: string;
}

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

/** The keys that `replaceKeyFile` has left next to `file`, the newest first. */
export function formerKeyFiles(file: string): string[] {
  const dir = dirname(file);
  const prefix = `${basename(file)}.`;
  if (!exists(dir)) return [];
  return readdirSync(dir)
    .filter((name) => name.startsWith(prefix) && /^\d+$/.test(name.slice(prefix.length)))
    .toSorted((a, b) => Number(b.slice(prefix.length)) - Number(a.slice(prefix.length)))
    .map((name) => join(dir, name));
}

/** Identifies a key without revealing it; stored in the database that it seals. */
export function keyFingerprint(key: Buffer): string {
  return createSeal(key, systemRandom).derive('fingerprint').toString('hex');
}

/** What a database states about its master keys. */
export interface KeyRecord {
  /** Of the newest key, hexadecimal. */
  fingerprint: string | null;
  /** The setting `master-keys`; null: no key was replaced. */
  ring: string | null;
}

/** Reads what the database states about its keys. */
export function keyRecord({ settings }: Pick<Tables, 'settings'>): KeyRecord {
  return { fingerprint: settings.get(FINGERPRINT), ring: settings.get(RING) };
}

/** The keys of a database, opened with one of `candidates`; null: none of them is its newest key or the one before it. */
export function unlockKeys(
  { fingerprint, ring }: KeyRecord,
  candidates: readonly Buffer[],
): MasterKeys | null {
  const isNewest = (key: Buffer) => keyFingerprint(key) === fingerprint;
  if (ring === null) {
    const key = candidates.find(isNewest);
    return key === undefined ? null : { newest: FIRST_KEY, keys: new Map([[FIRST_KEY, key]]) };
  }
  const { newest, former, next } = readRing(ring);
  const key =
    candidates.find(isNewest) ?? candidates.map((each) => nextKey(next, newest, each)).find(Boolean);
  if (key === undefined || key === null) return null;
  const keys = new Map([[newest, key]]);
  const seal = createSeal(() => ({ newest, keys }), systemRandom);
  const others = Object.entries(former).map(([number, sealed]): [number, Buffer] => [
    Number(number),
    seal.open(Buffer.from(sealed, 'base64'), ringContext(Number(number))),
  ]);
  return { newest, keys: new Map([...keys, ...others]) };
}

/** The newest key, which the key before it has sealed; null: `key` is not that key, or the key file has the newest one. */
function nextKey(sealed: string | undefined, newest: number, key: Buffer): Buffer | null {
  if (sealed === undefined) return null;
  const seal = createSeal(() => ({ newest: newest - 1, keys: new Map([[newest - 1, key]]) }), systemRandom);
  try {
    return seal.open(Buffer.from(sealed, 'base64'), ringContext(newest));
  } catch {
    // The tag of AES-GCM does not match: it is another key.
    return null;
  }
}

function ringContext(number: number): string {
  return `master-key:${number}`;
}

function readRing(ring: string): Ring {
  // Sound: only the functions below write the setting.
  return JSON.parse(ring) as Ring;
}

/** Creates a newest key; the former ones remain. Throws an Error when there are 255 already. Only in a unit of work. */
export function addMasterKey(
  { settings }: Pick<Tables, 'settings'>,
  { newest, keys }: MasterKeys,
  random: Random,
): void {
  const key = random.bytes(KEY_BYTES);
  const number = newest + 1;
  if (number > MAX_KEYS) throw new Error(`A master key cannot be replaced more than ${MAX_KEYS - 1} times`);
  const all = new Map([...keys, [number, key]]);
  const sealBy = (by: number, of: number, plain: Buffer) =>
    createSeal(() => ({ newest: by, keys: all }), random)
      .seal(plain, ringContext(of))
      .toString('base64');
  const ring: Ring = {
    newest: number,
    former: Object.fromEntries([...keys].map(([of, former]) => [of, sealBy(number, of, former)])),
    next: sealBy(newest, number, key),
  };
  settings.put(RING, JSON.stringify(ring));
  settings.put(FINGERPRINT, keyFingerprint(key));
}

/** Whether the former key still opens the newest one, because the key file may have the former. */
export function isReplacing({ ring }: KeyRecord): boolean {
  return ring !== null && readRing(ring).next !== undefined;
}

/** Removes what opens the newest key by the former one. Call it when the key file has the newest. Only in a unit of work. */
export function completeReplacement({ settings }: Pick<Tables, 'settings'>): void {
  const stored = settings.get(RING);
  if (stored === null) return;
  const { next: _, ...ring } = readRing(stored);
  settings.put(RING, JSON.stringify(ring));
}

/**
 * Replaces the key in `file`, which keeps its owner and mode: a process that reads it finds one of both keys. The former key
 * is in `<file>.<number>` afterwards. Throws StoreFault.
 */
export function replaceKeyFile(file: string, key: Buffer, formerNumber: number): void {
  const temporary = `${file}.new`;
  try {
    const { uid, gid } = statSync(file);
    rmSync(temporary, { force: true });
    const fd = openSync(temporary, 'wx', 0o600);
    try {
      fchownSync(fd, uid, gid);
      writeSync(fd, key);
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    const former = `${file}.${formerNumber}`;
    linkIfAbsent(file, former);
    if (!readFileSync(former).equals(readFileSync(file)))
      throw new StoreFault(`${former} exists and is another key: move it away`);
    renameSync(temporary, file);
    syncPath(dirname(file));
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
 * when the key file is missing or belongs to another database: its secrets could not be read. The seal uses a new key as soon
 * as a command has replaced it. `credentialsDirectory`: `$CREDENTIALS_DIRECTORY`.
 */
export async function openSeal(
  { random, tables, writer }: Pick<Context, 'random' | 'tables' | 'writer'>,
  { file, credentialsDirectory }: { file: string; credentialsDirectory?: string | undefined },
): Promise<Seal> {
  requireExisting(file, tables);
  const first = loadMasterKey(file, random, credentialsDirectory);
  await writer.run(({ settings }) => {
    if (settings.get(FINGERPRINT) === null) settings.put(FINGERPRINT, keyFingerprint(first));
  });
  let { ring } = keyRecord(tables);
  let unlocked = unlockKeys(keyRecord(tables), [first]);
  if (unlocked === null) throw otherKey(file);
  return createSeal(() => {
    const record = keyRecord(tables);
    if (record.ring === ring && unlocked !== null) return unlocked;
    // A command has replaced the key: the former one opens it until the key file has it.
    unlocked =
      unlockKeys(record, [...(unlocked?.keys.values() ?? [])]) ??
      masterKeysOf(tables, { file, credentialsDirectory });
    if (unlocked === null) throw otherKey(file);
    ring = record.ring;
    return unlocked;
  }, random);
}

/** The keys of the database; null: it has none yet, or `file` has another. Throws StoreFault when the file is missing. */
export function masterKeysOf(
  tables: Pick<Tables, 'settings'>,
  { file, credentialsDirectory }: { file: string; credentialsDirectory?: string | undefined },
): MasterKeys | null {
  requireExisting(file, tables);
  return exists(file)
    ? unlockKeys(keyRecord(tables), [loadMasterKey(file, systemRandom, credentialsDirectory)])
    : null;
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
  if (tables === null) return;
  const record = keyRecord(tables);
  if (record.fingerprint !== null && unlockKeys(record, [key]) === null) throw otherKey(file);
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

import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import type { Random } from '../core/random.ts';
import { StoreFault } from './database.ts';

/** The key file beside the database: 32 random bytes, for its owner only. Without it no secret can be opened. */
const LENGTH = 32;

/** Reads the master key, making it if there is none. Throws StoreFault when it is no key, or open to others. */
export function loadMasterKey(file: string, random: Random): Buffer {
  if (!existsSync(file)) {
    // `wx`: two commands that start together must not each make a key and one lose its own.
    try {
      writeFileSync(file, random.bytes(LENGTH), { mode: 0o600, flag: 'wx' });
      chmodSync(file, 0o600);
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
    }
  }
  if ((statSync(file).mode & 0o077) !== 0) {
    throw new StoreFault(`the master key ${file} can be read by others: chmod 600 it`);
  }
  const key = readFileSync(file);
  if (key.length !== LENGTH)
    throw new StoreFault(`the master key ${file} must be ${LENGTH} bytes, it is ${key.length}`);
  return key;
}

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { DATABASE_FILE, openDatabase } from '../../../src/store/database/database.ts';
import {
  openingFault,
  StoreFault,
  StoreUnavailable,
  storageFailure,
  usingFault,
} from '../../../src/store/database/failure.ts';
import { temporaryDir } from '../../support/store.ts';

const coded = (code: string, message = 'x') => Object.assign(new Error(message), { code });

describe('storage failures', () => {
  it.each([
    ['SQLITE_BUSY', 'busy'],
    ['SQLITE_BUSY_RECOVERY', 'busy'],
    ['SQLITE_BUSY_SNAPSHOT', 'busy'],
    ['SQLITE_FULL', 'full'],
    ['ENOSPC', 'full'],
    ['SQLITE_IOERR_FSYNC', 'io'],
    ['SQLITE_IOERR_NOMEM', 'memory'],
    ['EIO', 'io'],
    ['SQLITE_READONLY_DBMOVED', 'read-only'],
    ['EROFS', 'read-only'],
    ['SQLITE_CORRUPT_VTAB', 'corrupt'],
    ['SQLITE_NOTADB', 'corrupt'],
    ['SQLITE_CANTOPEN_ISDIR', 'denied'],
  ])('recognize %s', (code, kind) => {
    expect(storageFailure(coded(code))?.kind).toBe(kind);
  });

  it.each(['SQLITE_CONSTRAINT_UNIQUE', 'SQLITE_ERROR', 'EADDRINUSE', 'EACCES', 'ERR_INVALID_ARG_TYPE'])(
    'are not %s',
    (code) => {
      expect(storageFailure(coded(code))).toBeNull();
      expect(usingFault('data.dir x', coded(code))).not.toBeInstanceOf(StoreFault);
    },
  );

  it('do not change errors that name their remedy', () => {
    const fault = new StoreFault('known');
    expect(openingFault('file', fault)).toBe(fault);
    expect(storageFailure(new StoreUnavailable('closing', 'x'))?.kind).toBe('closing');
  });
});

describe('opening a database', () => {
  it.each([
    ['is no database', (file: string) => writeFileSync(file, 'x'.repeat(4096)), /SQLITE_NOTADB.*\.recover/],
    ['is a directory', (file: string) => mkdirSync(file), /SQLITE_CANTOPEN.*Check that the directory exists/],
    ['is damaged', damage, /SQLITE_CORRUPT: .*restore a backup/],
  ])('names the file that %s, and the remedy', (_, spoil, words) => {
    const dir = temporaryDir();
    const file = join(dir, DATABASE_FILE);
    spoil(file);
    const error = caught(() => openDatabase(dir));
    expect(error).toBeInstanceOf(StoreFault);
    expect(error).toHaveProperty('message', expect.stringMatching(words));
    expect(error).toHaveProperty('message', expect.stringMatching(new RegExp(`^${file} cannot be used: `)));
  });
});

/** Overwrites the page of the schema of a new database, except for its header. */
function damage(file: string): void {
  const dir = mkdtempSync(`${file}-`);
  openDatabase(dir).close();
  const bytes = readFileSync(join(dir, DATABASE_FILE));
  rmSync(dir, { recursive: true });
  writeFileSync(file, bytes.fill(0xff, 120, 3000));
}

function caught(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return error;
  }
  throw new Error('nothing was thrown');
}

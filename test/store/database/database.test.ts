import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { DATABASE_FILE, lockDaemon, openDatabase } from '../../../src/store/database/database.ts';
import { temporaryDir } from '../../support/store.ts';

const SOURCES = new URL('../../../src/', import.meta.url);

describe('the database', () => {
  it('is opened by one module only, which references all objects of better-sqlite3', () => {
    const creates = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' }).filter(
      (file) =>
        file.endsWith('.ts') &&
        /new Sqlite\(|\.(?:iterate|pragma)\(/.test(readFileSync(new URL(file, SOURCES), 'utf8')),
    );
    // The objects of the flush thread are variables of its module.
    expect(creates.toSorted()).toEqual(['store/database/connection.ts', 'store/database/flush-thread.ts']);
  });

  it('is readable by its owner only', () => {
    const dir = temporaryDir();
    openDatabase(dir).close();
    expect(statSync(dir).mode & 0o777).toBe(0o700);
    expect(statSync(join(dir, DATABASE_FILE)).mode & 0o777).toBe(0o600);
  });

  it('flushes every commit to disk', () => {
    const db = openDatabase(temporaryDir());
    expect(db.prepare('PRAGMA journal_mode').pluck().get()).toBe('wal');
    expect(db.prepare('PRAGMA synchronous').pluck().get()).toBe(2);
    expect(db.prepare('PRAGMA foreign_keys').pluck().get()).toBe(1);
    db.close();
  });

  it('can return free pages to the file system', () => {
    const db = openDatabase(temporaryDir());
    expect(db.prepare('PRAGMA auto_vacuum').pluck().get()).toBe(2);
    db.close();
  });

  it('rejects a database that is newer than the program', () => {
    const dir = temporaryDir();
    const db = openDatabase(dir);
    db.exec('PRAGMA user_version = 9000');
    db.close();
    expect(() => openDatabase(dir)).toThrow(
      /has schema 9000, this program \(Postrider \d[^)]*\) knows schemas up to \d+: Postrider \d\S* migrated it\. Install/,
    );
  });

  it.each([
    ['cannot be created', '/proc/postrider/data', /data\.dir \/proc\/postrider\/data cannot be used: ENOENT/],
    ['is a file', '/dev/null/data', /data\.dir \/dev\/null\/data cannot be used: ENOTDIR/],
  ])('throws StoreFault for a directory that %s', (_, dir, words) => {
    expect(() => openDatabase(dir)).toThrow(words);
  });

  it('creates missing directories', () => {
    const dir = join(temporaryDir(), 'a', 'b');
    openDatabase(dir).close();
    expect(readdirSync(dir)).toContain(DATABASE_FILE);
  });

  it('is locked by one daemon at a time', () => {
    const dir = temporaryDir();
    const lock = lockDaemon(dir);
    expect(() => lockDaemon(dir)).toThrow(/Another postrider daemon is running/);
    lock.release();
    lockDaemon(dir).release();
    expect(readdirSync(dir)).toContain('daemon.lock');
  });
});

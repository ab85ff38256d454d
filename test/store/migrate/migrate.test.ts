import { execFileSync } from 'node:child_process';
import fs, {
  cpSync,
  existsSync,
  readdirSync,
  readlinkSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { openConnection } from '../../../src/store/database/connection.ts';
import { lockDaemon, openDatabase } from '../../../src/store/database/database.ts';
import { StoreFault } from '../../../src/store/database/failure.ts';
import { type MigrationProgress, migrateDatabase, schemaOf } from '../../../src/store/migrate/migrate.ts';
import { estimateMigration, freeBytesOf } from '../../../src/store/migrate/migration-estimate.ts';
import {
  knownMigrations,
  type Migration,
  migrationsFrom,
  newestOf,
} from '../../../src/store/migrate/migrations.ts';
import { upgradeDatabase } from '../../../src/store/migrate/upgrade.ts';
import { createOldDatabase, OLD_SCHEMA } from '../../support/old-database.ts';
import { requirePrograms } from '../../support/required-programs.ts';
import { temporaryDir } from '../../support/store.ts';

const rootRequired = requirePrograms('root');

/** A tmpfs of a size such as `80m`, until the test has finished. */
function smallDisk(size: string): string {
  const dir = temporaryDir();
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', dir]);
  onTestFinished(() => void execFileSync('umount', ['--lazy', dir]));
  return dir;
}

/** Sets the free space of all file systems until `restore`. */
function setFreeBytes(bytes: number): { restore(): void } {
  const space = Object.assign(fs.statfsSync('/'), { bavail: bytes, bsize: 1 });
  const statfs = vi.spyOn(fs, 'statfsSync').mockReturnValue(space);
  syncBuiltinESMExports();
  return {
    restore: () => {
      statfs.mockRestore();
      syncBuiltinESMExports();
    },
  };
}

const FIRST: Migration = {
  kind: 'sql',
  version: 1,
  name: 'first',
  sql: 'CREATE TABLE notes (seq INTEGER PRIMARY KEY, author TEXT NOT NULL, text TEXT NOT NULL)',
};
const SECOND: Migration = {
  kind: 'sql',
  version: 2,
  name: 'second',
  sql: 'CREATE INDEX notes_by_author ON notes (author, text)',
};
const THIRD: Migration = { kind: 'sql', version: 3, name: 'third', sql: "UPDATE notes SET author = 'Ada'" };
const NOTES = 20_000;

function notes(): string {
  const file = join(temporaryDir(), 'postrider.db');
  migrateDatabase({ file, migrations: [FIRST] });
  const db = openConnection(file, {});
  db.exec('PRAGMA journal_mode = WAL');
  db.exec(`INSERT INTO notes (author, text) WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c
    WHERE x < ${NOTES}) SELECT 'author ' || (x % 100), 'some text of note ' || x FROM c`);
  db.close();
  return file;
}

function filesOf(file: string): string[] {
  return readdirSync(dirname(file)).sort();
}

function authors(file: string): unknown {
  const db = openConnection(file, { fileMustExist: true });
  try {
    return db.prepare('SELECT count(DISTINCT author) FROM notes').pluck().get();
  } finally {
    db.close();
  }
}

it('no two migrations have the same version', () => {
  const versions = knownMigrations().map(({ version }) => version);
  expect(versions.filter((version, index) => versions.indexOf(version) !== index)).toEqual([]);
});

describe('a migration in place', () => {
  it('leaves a complete copy of the old database', () => {
    const file = notes();
    const { from, to, copy } = migrateDatabase({ file, migrations: [FIRST, SECOND, THIRD] });
    expect({ from, to }).toEqual({ from: 1, to: 3 });
    expect(filesOf(file)).toEqual(['postrider.db', basename(copy ?? '')]);
    expect([schemaOf(file), authors(file)]).toEqual([3, 1]);
    expect([schemaOf(copy ?? ''), authors(copy ?? '')]).toEqual([1, 100]);
    expect(statSync(copy ?? '').mode & 0o777).toBe(0o600);
  });

  it('copies commits that are only in the write-ahead log', () => {
    const source = notes();
    const open = openConnection(source, {});
    open.exec('PRAGMA wal_autocheckpoint = 0');
    open.exec("INSERT INTO notes (author, text) VALUES ('Newcomer', 'hello')");
    const file = join(temporaryDir(), 'postrider.db');
    for (const suffix of ['', '-wal']) cpSync(source + suffix, file + suffix);
    open.close();
    const { copy } = migrateDatabase({ file, migrations: [FIRST, SECOND] });
    expect(authors(copy ?? '')).toBe(101);
  });

  it('removes partial files and copies from before earlier migrations, and keeps other files', () => {
    const file = notes();
    for (const name of ['before-2-1000.partial', 'new', 'new-journal', 'sample-77', 'before-1-900', 'backup'])
      writeFileSync(`${file}.${name}`, 'x');
    const { copy, removed } = migrateDatabase({ file, migrations: [FIRST, SECOND] });
    expect(filesOf(file)).toEqual(['postrider.db', 'postrider.db.backup', basename(copy ?? '')]);
    expect(removed.map((path) => basename(path)).sort()).toEqual([
      'postrider.db.before-1-900',
      'postrider.db.before-2-1000.partial',
      'postrider.db.new',
      'postrider.db.new-journal',
      'postrider.db.sample-77',
    ]);
  });

  it('continues after a failed step, with the copy from before the first', () => {
    const file = notes();
    const broken: Migration = { kind: 'sql', version: 3, name: 'third', sql: 'UPDATE nothing SET x = 1' };
    expect(() => migrateDatabase({ file, migrations: [FIRST, SECOND, broken] })).toThrow('nothing');
    expect(schemaOf(file)).toBe(2);
    const { from, copy } = migrateDatabase({ file, migrations: [FIRST, SECOND, THIRD] });
    expect(from).toBe(2);
    expect(filesOf(file)).toEqual(['postrider.db', basename(copy ?? '')]);
    expect([schemaOf(copy ?? ''), authors(copy ?? '')]).toEqual([1, 100]);
  });

  it('does not use an older copy with the current schema of the database', () => {
    const file = notes();
    cpSync(file, `${file}.before-2-1000`);
    const db = openConnection(file, {});
    db.exec("INSERT INTO notes (author, text) VALUES ('Newcomer', 'hello')");
    db.close();
    const { copy } = migrateDatabase({ file, migrations: [FIRST, SECOND] });
    expect(authors(copy ?? '')).toBe(101);
    expect(filesOf(file)).toHaveLength(2);
  });

  it('throws when another process wrote to the database while it was copied', () => {
    const file = notes();
    let written = false;
    const onProgress = ({ step }: MigrationProgress) => {
      if (step !== 'backup' || written) return;
      written = true;
      const other = openConnection(file, {});
      other.exec("INSERT INTO notes (author, text) VALUES ('Newcomer', 'hello')");
      other.close();
    };
    try {
      const { copy } = migrateDatabase({ file, migrations: [FIRST, SECOND], onProgress });
      // A file system that shares blocks copies in one call, which no write can interrupt.
      expect(written).toBe(false);
      expect(authors(copy ?? '')).toBe(100);
    } catch (error) {
      expect(error).toBeInstanceOf(StoreFault);
      expect(schemaOf(file)).toBe(1);
      expect(filesOf(file)).toEqual(['postrider.db']);
    }
  });

  it('throws while another connection has the database open', () => {
    const file = notes();
    const other = openConnection(file, {});
    other.exec('SELECT count(*) FROM notes');
    expect(() => migrateDatabase({ file, migrations: [FIRST, SECOND], busyTimeoutMs: 10 })).toThrow(/locked/);
    other.close();
    expect(schemaOf(file)).toBe(1);
    expect(filesOf(file).filter((name) => name.includes('.before-'))).toEqual([]);
  });
});

describe('the plan of a migration', () => {
  it('replaces the migrations before a rebuild that can read the schema', () => {
    const rebuild = { version: 4, name: 'rebuild', from: 2, tables: '', indexes: '' };
    const all: Migration[] = [
      FIRST,
      SECOND,
      THIRD,
      { kind: 'rebuild', version: 4, name: 'rebuild', rebuild },
      { ...SECOND, version: 5 },
    ];
    const versions = (found: number) => migrationsFrom(found, all).map(({ version }) => version);
    expect([0, 1, 2, 3, 4, 5].map(versions)).toEqual([[4, 5], [2, 4, 5], [4, 5], [4, 5], [5], []]);
  });
});

describe('an estimate', () => {
  it('is close to the needs of the migration, and leaves no file', () => {
    const file = notes();
    const estimate = estimateMigration(file, [FIRST, SECOND]);
    expect(filesOf(file)).toEqual(['postrider.db']);
    expect(estimate).toMatchObject({ from: 1, to: 2, steps: ['0002-second'], rows: NOTES, rebuilds: false });
    migrateDatabase({ file, migrations: [FIRST, SECOND] });
    const { size } = statSync(file);
    expect(estimate?.newBytes).toBeGreaterThan(0.9 * size);
    expect(estimate?.newBytes).toBeLessThan(1.1 * size);
    expect(estimate?.seconds).toBeGreaterThan(0);
  });

  it('is null for a database with the newest schema', () => {
    expect(estimateMigration(notes(), [FIRST])).toBeNull();
  });
});

describe.skipIf(rootRequired.missing)(`an estimate on a small disk${rootRequired.reason}`, () => {
  it('takes a bounded part of the free space, and states what was free before', () => {
    const dir = smallDisk('400m');
    const file = createOldDatabase(dir);
    const db = openConnection(file, {});
    db.exec(`WITH RECURSIVE n (value) AS (VALUES (1) UNION ALL SELECT value + 1 FROM n WHERE value < 10000)
      INSERT INTO contents (body, created_at) SELECT hex(randomblob(6000)), value FROM n`);
    db.close();
    const free = freeBytesOf(dir);
    const { size } = statSync(file);
    // Two copies of the newest 10,000 rows of each table, which this is about, would not fit.
    expect(free).toBeLessThan(3 * size);
    const estimate = estimateMigration(file, knownMigrations());
    expect(estimate).toMatchObject({
      rows: expect.any(Number),
      seconds: expect.any(Number),
      freeBytes: free,
    });
    expect(estimate?.newBytes).toBeGreaterThan(0.9 * size);
    expect(estimate?.newBytes).toBeLessThan(1.1 * size);
    expect(readdirSync(dir)).toEqual(['postrider.db']);
    expect(() => upgradeDatabase(dir)).not.toThrow();
  });

  it('writes nothing when little is free, and uses the size of the file', () => {
    const dir = smallDisk('80m');
    const file = createOldDatabase(dir, { large: true });
    const free = freeBytesOf(dir);
    const estimate = estimateMigration(file, knownMigrations());
    expect(estimate).toMatchObject({ rows: null, seconds: null, freeBytes: free });
    expect(estimate?.neededBytes).toBeGreaterThan(free);
    expect(() => upgradeDatabase(dir)).toThrow(/needs about [\d.]+ MB in .+, and [\d.]+ MB are available/);
    expect(schemaOf(file)).toBe(OLD_SCHEMA);
  });

  it('uses the size of the file when a row is too large for the sample', () => {
    const dir = smallDisk('400m');
    const file = createOldDatabase(dir);
    const db = openConnection(file, {});
    db.exec('INSERT INTO contents (body, created_at) VALUES (hex(zeroblob(10000000)), 2)');
    db.close();
    expect(estimateMigration(file, knownMigrations())).toMatchObject({ rows: null });
    expect(readdirSync(dir)).toEqual(['postrider.db']);
  });
});

describe('free space', () => {
  it('is checked before anything is changed', () => {
    const dir = temporaryDir();
    const file = createOldDatabase(dir);
    writeFileSync(`${file}.before-14-1000`, 'x'.repeat(2000));
    const freeSpace = setFreeBytes(1000);
    onTestFinished(freeSpace.restore);
    expect(() => openDatabase(dir)).toThrow(
      /The migration from schema 15 to \d+ needs about [\d.]+ MB in .+, and 1\.0 kB are available\. Free space.+postrider\.db\.before-14-1000 \(2\.0 kB\)/,
    );
    expect(schemaOf(file)).toBe(OLD_SCHEMA);
    expect(existsSync(`${file}.before-14-1000`)).toBe(true);
    freeSpace.restore();
    openDatabase(dir).close();
    expect(existsSync(`${file}.before-14-1000`)).toBe(false);
  });
});

describe('a database of an older program', () => {
  it('is migrated when it is opened', () => {
    const dir = temporaryDir();
    const file = createOldDatabase(dir);
    const db = openDatabase(dir);
    expect(db.prepare('SELECT count(*) FROM accounts').pluck().get()).toBe(1);
    db.close();
    expect(filesOf(file).filter((name) => name.includes('.before-'))).toHaveLength(1);
  });

  it('is not migrated by opening it when it is large', () => {
    const dir = temporaryDir();
    const file = createOldDatabase(dir, { large: true });
    expect(() => openDatabase(dir)).toThrow(/has schema 15, this program needs \d+.+run "postrider migrate"/);
    expect(schemaOf(file)).toBe(OLD_SCHEMA);
    const { to } = upgradeDatabase(dir);
    expect(to).toBe(newestOf(knownMigrations()));
    openDatabase(dir).close();
  });

  it('is migrated at the target of a symbolic link; the link stays', () => {
    const target = createOldDatabase(temporaryDir());
    const dir = temporaryDir();
    const link = join(dir, 'postrider.db');
    symlinkSync(target, link);
    openDatabase(dir).close();
    expect(readlinkSync(link)).toBe(target);
    expect(schemaOf(target)).toBe(newestOf(knownMigrations()));
    expect(filesOf(link).filter((name) => name.startsWith('postrider.db'))).toEqual(['postrider.db']);
    expect(filesOf(target).filter((name) => name.includes('.before-'))).toHaveLength(1);
  });

  it('is found at the target of a symbolic link after a kill between the two renames', () => {
    const target = createOldDatabase(temporaryDir());
    const dir = temporaryDir();
    symlinkSync(target, join(dir, 'postrider.db'));
    openDatabase(dir).close();
    renameSync(target, `${target}.new`);
    upgradeDatabase(dir);
    expect(schemaOf(target)).toBe(newestOf(knownMigrations()));
  });

  it('is not migrated while a daemon runs on it', () => {
    const dir = temporaryDir();
    const file = createOldDatabase(dir);
    const lock = lockDaemon(dir);
    expect(() => openDatabase(dir, { lockTimeoutMs: 10 })).toThrow(/Another postrider daemon is running/);
    lock.release();
    expect(schemaOf(file)).toBe(OLD_SCHEMA);
  });

  it('is the new database after a kill between the two renames', () => {
    const dir = temporaryDir();
    const file = createOldDatabase(dir);
    openDatabase(dir).close();
    // As on a file system without hard links: the old file has its new name, the new one not yet.
    renameSync(file, `${file}.new`);
    const db = openDatabase(dir);
    expect(db.prepare('SELECT count(*) FROM accounts').pluck().get()).toBe(1);
    db.close();
  });

  it('is created again when its creation was interrupted', () => {
    const dir = temporaryDir();
    writeFileSync(join(dir, 'postrider.db'), '');
    openDatabase(dir).close();
    expect(schemaOf(join(dir, 'postrider.db'))).toBe(newestOf(knownMigrations()));
  });
});

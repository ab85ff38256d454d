// Long: migrations are killed in every step, each in a process of its own.
import { execFileSync, spawnSync } from 'node:child_process';
import fs, {
  chownSync,
  cpSync,
  existsSync,
  linkSync,
  readdirSync,
  readlinkSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { openConnection } from '../../../src/store/database/connection.ts';
import { lockDaemon, openDatabase } from '../../../src/store/database/database.ts';
import { StoreFault } from '../../../src/store/database/failure.ts';
import { removeLeftovers } from '../../../src/store/migrate/files.ts';
import { type MigrationProgress, migrateDatabase, schemaOf } from '../../../src/store/migrate/migrate.ts';
import { knownMigrations, type Migration, newestOf } from '../../../src/store/migrate/migrations.ts';
import { estimateUpgrade, schemaState, upgradeDatabase } from '../../../src/store/migrate/upgrade.ts';
import { IN_PLACE, REBUILD } from '../../support/example-migrations.ts';
import { createOldDatabase, OLD_SCHEMA, PROGRAM } from '../../support/old-database.ts';
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
  version: 1,
  name: 'first',
  sql: 'CREATE TABLE notes (seq INTEGER PRIMARY KEY, author TEXT NOT NULL, text TEXT NOT NULL)',
};
const SECOND: Migration = {
  version: 2,
  name: 'second',
  sql: 'CREATE INDEX notes_by_author ON notes (author, text)',
};
const THIRD: Migration = { version: 3, name: 'third', sql: "UPDATE notes SET author = 'Ada'" };
const NOTES = 20_000;
/** Another process that wants to write. */
const OTHER_WRITER = `
  import Sqlite from '${import.meta.resolve('better-sqlite3')}';
  new Sqlite(process.argv[1], { timeout: 0 }).exec("INSERT INTO notes (author, text) VALUES ('Newcomer', 'hello')")`;

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

describe('a migration', () => {
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
    for (const name of ['new', 'new-journal', 'migrated', 'before-1-900', 'backup'])
      writeFileSync(`${file}.${name}`, 'x');
    const { copy, removed } = migrateDatabase({ file, migrations: [FIRST, SECOND] });
    expect(filesOf(file)).toEqual(['postrider.db', 'postrider.db.backup', basename(copy ?? '')]);
    expect(removed.map((path) => basename(path)).sort()).toEqual([
      'postrider.db.before-1-900',
      'postrider.db.migrated',
      'postrider.db.new',
      'postrider.db.new-journal',
    ]);
  });

  it('changes nothing when a step fails', () => {
    const file = notes();
    const broken: Migration = { version: 3, name: 'third', sql: 'UPDATE nothing SET x = 1' };
    expect(() => migrateDatabase({ file, migrations: [FIRST, SECOND, broken] })).toThrow('nothing');
    expect([schemaOf(file), authors(file)]).toEqual([1, 100]);
    expect(filesOf(file)).toEqual(['postrider.db']);
  });

  it('changes nothing when a reference would be broken', () => {
    const file = notes();
    const broken: Migration = {
      version: 2,
      name: 'second',
      sql: `CREATE TABLE replies (note INTEGER REFERENCES notes (seq));
        INSERT INTO replies SELECT -seq FROM notes`,
    };
    expect(() => migrateDatabase({ file, migrations: [FIRST, broken] })).toThrow(
      new StoreFault(
        `${NOTES} rows of the migrated database refer to rows that do not exist: nothing was changed`,
      ),
    );
    expect([schemaOf(file), filesOf(file)]).toEqual([1, ['postrider.db']]);
  });

  it('locks the database while it is copied', () => {
    const file = notes();
    let attempts = 0;
    const onProgress = ({ step }: MigrationProgress) => {
      if (step === 'renamed') return;
      // A connection of this process shares no lock with the migration; its descriptors would release them.
      const other = spawnSync(process.execPath, ['--input-type=module', '-e', OTHER_WRITER, file]);
      expect(String(other.stderr)).toContain('database is locked');
      attempts++;
    };
    migrateDatabase({ file, migrations: [FIRST, SECOND], onProgress });
    expect(attempts).toBeGreaterThan(4);
    expect(authors(file)).toBe(100);
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

describe('an example in place and one that writes a table anew', () => {
  const PROCESS = fileURLToPath(new URL('killed-migration.ts', import.meta.url));
  const TSX = import.meta.resolve('tsx');
  const MIGRATIONS = [...PROGRAM, IN_PLACE, REBUILD];

  function oldDatabase(): string {
    const file = createOldDatabase(temporaryDir());
    const db = openConnection(file, {});
    // More than two chunks of the copy.
    db.exec(`WITH RECURSIVE n (x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM n WHERE x < 1000)
      INSERT INTO contents (body, size, created_at) SELECT hex(randomblob(5000)), 10000, x FROM n`);
    db.exec(`WITH RECURSIVE n (x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM n WHERE x < 1000)
      INSERT INTO strikes SELECT 'acct_old', 'email_' || x, 'soft', x FROM n`);
    db.close();
    return file;
  }

  function contentOf(file: string): unknown {
    const db = openConnection(file, { fileMustExist: true });
    try {
      expect(db.prepare('PRAGMA integrity_check').pluck().get()).toBe('ok');
      const schema = schemaOf(file);
      const shift = schema < REBUILD.version ? 1 : 0;
      return [
        db.prepare('SELECT total(created_at), total(length(body)), count(*) FROM contents').get(),
        db.prepare(`SELECT count(*), total(at + ${shift}) AS at, min(recipient_hash) FROM strikes`).get(),
      ];
    } finally {
      db.close();
    }
  }

  it('change schema and rows', () => {
    const file = oldDatabase();
    const before = contentOf(file);
    migrateDatabase({ file, migrations: MIGRATIONS });
    expect(contentOf(file)).toEqual(before);
    const db = openConnection(file, {});
    expect(db.prepare('SELECT color FROM accounts').pluck().all()).toEqual(['blue']);
    expect(() => db.exec("INSERT INTO strikes VALUES ('acct_old', 'email_x', 'hard', 1)")).not.toThrow();
    expect(() => db.exec("INSERT INTO strikes VALUES ('acct_old', 'email_x', 'odd', 1)")).toThrow(/CHECK/);
    db.close();
  });

  it.each([
    ['copy', 2],
    ['migrate', 1],
    ['migrate', 2],
    ['migrate', 6],
    ['check', 1],
    ['sync', 1],
    ['linked', 1],
    ['renamed', 1],
  ])('leave a complete database when they are killed (%s %i)', (step, report) => {
    const file = oldDatabase();
    const before = contentOf(file);
    const args = ['--import', TSX, PROCESS, file, step, String(report)];
    expect(spawnSync(process.execPath, args, { stdio: 'inherit' }).signal).toBe('SIGKILL');
    expect(schemaOf(file)).toBe(step === 'renamed' ? REBUILD.version : OLD_SCHEMA);
    expect(contentOf(file)).toEqual(before);
    migrateDatabase({ file, migrations: MIGRATIONS });
    expect(schemaOf(file)).toBe(REBUILD.version);
    expect(contentOf(file)).toEqual(before);
    const files = filesOf(file);
    expect(files).toEqual(['postrider.db', expect.stringContaining('.before-')]);
    const copy = join(dirname(file), files[1] ?? '');
    expect([schemaOf(copy), contentOf(copy)]).toEqual([OLD_SCHEMA, before]);
  });

  it.runIf(process.getuid?.() === 0)('give the new file to the owner of the old one', () => {
    const file = oldDatabase();
    chownSync(file, 12_345, 12_346);
    migrateDatabase({ file, migrations: MIGRATIONS });
    expect(statSync(file)).toMatchObject({ uid: 12_345, gid: 12_346 });
  });
});

describe('files of an interrupted migration', () => {
  it.each(['missing', 'empty'])('are the database when it is %s', (state) => {
    // As on a file system without hard links, after a kill between the two renames.
    const file = createOldDatabase(temporaryDir());
    renameSync(file, `${file}.migrated`);
    if (state === 'empty') writeFileSync(file, '');
    removeLeftovers(file);
    expect(schemaOf(file)).toBe(OLD_SCHEMA);
    expect(filesOf(file)).toEqual(['postrider.db']);
  });

  it('are not the database when they are incomplete', () => {
    const file = createOldDatabase(temporaryDir());
    renameSync(file, `${file}.new`);
    removeLeftovers(file);
    expect(filesOf(file)).toEqual([]);
  });

  it('are no copy when they are a second link to the database', () => {
    const file = notes();
    linkSync(file, `${file}.before-3-1`);
    expect(removeLeftovers(file)).toEqual([`${file}.before-3-1`]);
    expect(filesOf(file)).toEqual(['postrider.db']);
  });
});

describe('an estimate', () => {
  it('is twice the database', () => {
    const dir = temporaryDir();
    const file = createOldDatabase(dir);
    expect(estimateUpgrade(dir)).toEqual({
      from: OLD_SCHEMA,
      to: IN_PLACE.version,
      steps: ['8001-in-place'],
      databaseBytes: statSync(file).size,
      neededBytes: 2 * statSync(file).size,
      freeBytes: expect.any(Number),
      dir,
    });
    expect(filesOf(file)).toEqual(['postrider.db']);
  });

  it('is null for a database with the newest schema', () => {
    const dir = temporaryDir();
    openDatabase(dir).close();
    expect(estimateUpgrade(dir)).toBeNull();
  });
});

describe.skipIf(rootRequired.missing)(`a small disk${rootRequired.reason}`, () => {
  it('holds no migration that needs more space', () => {
    const dir = smallDisk('80m');
    const file = createOldDatabase(dir, { large: true });
    expect(() => upgradeDatabase(dir)).toThrow(/needs about [\d.]+ MB in .+, and [\d.]+ MB are available/);
    expect(schemaOf(file)).toBe(OLD_SCHEMA);
  });
});

describe('free space', () => {
  it('is checked before anything is changed', () => {
    const dir = temporaryDir();
    const file = createOldDatabase(dir);
    writeFileSync(`${file}.before-1-1000`, 'x'.repeat(2000));
    const freeSpace = setFreeBytes(1000);
    onTestFinished(freeSpace.restore);
    expect(() => openDatabase(dir)).toThrow(
      /The migration from schema \d+ to \d+ needs about [\d.]+ [kM]B in .+, and 1\.0 kB are available\. Free space.+postrider\.db\.before-1-1000 \(2\.0 kB\)/,
    );
    expect(schemaOf(file)).toBe(OLD_SCHEMA);
    expect(existsSync(`${file}.before-1-1000`)).toBe(true);
    freeSpace.restore();
    openDatabase(dir).close();
    expect(existsSync(`${file}.before-1-1000`)).toBe(false);
  });
});

describe('a database of a development version', () => {
  it('is refused with the way to move its accounts, and not changed', () => {
    const dir = temporaryDir();
    const file = join(dir, 'postrider.db');
    const db = openConnection(file, {});
    db.exec('CREATE TABLE accounts (account_id TEXT PRIMARY KEY); PRAGMA user_version = 52');
    db.close();
    for (const open of [openDatabase, schemaState, upgradeDatabase])
      expect(() => open(dir)).toThrow(/development version of Postrider before 0\.2\.0.+account export/);
    expect(filesOf(file)).toContain('postrider.db');
    expect(filesOf(file).filter((name) => name.includes('.before-'))).toEqual([]);
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
    expect(() => openDatabase(dir)).toThrow(
      /has schema \d+, this program needs \d+.+run "postrider migrate"/,
    );
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
    renameSync(target, `${target}.migrated`);
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
    renameSync(file, `${file}.migrated`);
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

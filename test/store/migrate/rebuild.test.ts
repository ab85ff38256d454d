import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chownSync,
  cpSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { openConnection } from '../../../src/store/database/connection.ts';
import { removeLeftovers } from '../../../src/store/migrate/files.ts';
import { migrateDatabase } from '../../../src/store/migrate/migrate.ts';
import { type RebuildProgress, rebuildDatabase } from '../../../src/store/migrate/rebuild.ts';
import type { Rebuild } from '../../../src/store/migrate/rebuild-plan.ts';
import { schemaOf } from '../../support/schema.ts';
import { temporaryDir } from '../../support/store.ts';
import {
  CHANGED,
  createOldDatabase,
  DELETED,
  IDENTITY,
  LETTERS,
  migrationsFor,
  migrationsWith,
  rowsOf,
} from './rebuild-fixture.ts';

const OLD = ['owners', 'letters', 'tries', 'removed'];
const NEW = ['owners', 'letters', 'tries', 'added'];

function oldDatabase(): string {
  const file = join(temporaryDir(), 'postrider.db');
  createOldDatabase(file)();
  return file;
}

function read(file: string, sql: string): unknown[] {
  const db = openConnection(file, { fileMustExist: true });
  try {
    return db.prepare(sql).raw().all();
  } finally {
    db.close();
  }
}

function rebuild(file: string, by: Rebuild, options: { chunkRows?: number } = {}): RebuildProgress[] {
  const reports: RebuildProgress[] = [];
  const keepAs = `${file}.before-3-1`;
  rebuildDatabase(by, { file, keepAs, onProgress: (report) => reports.push(report), ...options });
  return reports;
}

describe('a rebuild', () => {
  it.each([1, 7, 100, 5000])('copies unchanged tables in chunks of %i rows', (chunkRows) => {
    const file = oldDatabase();
    const before = { rows: rowsOf(file, OLD), schema: schemaOf(file) };
    rebuild(file, IDENTITY, { chunkRows });
    expect({ rows: rowsOf(file, OLD), schema: schemaOf(file) }).toEqual(before);
    expect(rowsOf(`${file}.before-3-1`, OLD)).toBe(before.rows);
    expect(read(file, 'PRAGMA integrity_check')).toEqual([['ok']]);
    expect(read(file, "SELECT v FROM words_config WHERE k = 'secure-delete'")).toEqual([[1]]);
    expect(readdirSync(dirname(file)).sort()).toEqual(['postrider.db', 'postrider.db.before-3-1']);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  it.each([1, 100, 5000])('computes columns and groups rows, in chunks of %i rows', (chunkRows) => {
    const file = oldDatabase();
    rebuild(file, CHANGED, { chunkRows });
    expect(read(file, 'SELECT count(*), min(fresh) FROM letters')).toEqual([[LETTERS - DELETED, 7]]);
    expect(
      read(file, 'SELECT a.owner, l.kind, l.body FROM letters l JOIN owners a ON a.number = l.owner LIMIT 3'),
    ).toEqual([
      ['b', 2, 'BODY 1'],
      ['b', 2, 'BODY 2'],
      ['a', 2, 'BODY 3'],
    ]);
    expect(read(file, 'SELECT reports, count(*) FROM tries GROUP BY reports')).toEqual([
      ['["try 1","try 2","try 3"]', LETTERS - DELETED],
    ]);
    expect(read(file, 'PRAGMA auto_vacuum')).toEqual([[2]]);
    expect(read(file, 'PRAGMA user_version')).toEqual([[3]]);
  });

  it('does not assign a number again that AUTOINCREMENT has assigned', () => {
    const file = oldDatabase();
    rebuild(file, CHANGED);
    expect(read(file, "SELECT seq FROM sqlite_sequence WHERE name = 'letters'")).toEqual([[LETTERS]]);
  });

  it('includes commits that are only in the write-ahead log', () => {
    const source = join(temporaryDir(), 'postrider.db');
    const close = createOldDatabase(source);
    const dir = join(temporaryDir(), 'crashed');
    mkdirSync(dir);
    for (const suffix of ['', '-wal']) cpSync(source + suffix, join(dir, `postrider.db${suffix}`));
    close();
    const file = join(dir, 'postrider.db');
    rebuild(file, IDENTITY);
    expect(rowsOf(file, OLD)).toBe(rowsOf(source, OLD));
    expect(readdirSync(dir).filter((name) => /-(?:wal|shm|journal)$/.test(name))).toEqual([]);
  });

  it('reports the rows of every chunk, and ends at the total', () => {
    const reports = rebuild(oldDatabase(), CHANGED, { chunkRows: 100 });
    const copied = reports.filter(({ step }) => step === 'copy');
    const total = 2 + (LETTERS - DELETED) * 4;
    expect(copied.at(-1)).toMatchObject({ done: total, total });
    expect(copied.length).toBeGreaterThan((LETTERS - DELETED) / 100);
    expect(copied.map(({ done }) => done)).toEqual(copied.map(({ done }) => done).sort((a, b) => a - b));
    expect(reports.filter(({ step }) => step === 'index').map(({ item }) => item)).toEqual([
      'letters_by_owner',
      'letters_by_kind',
      'letters_deleted',
    ]);
  });

  it('throws while another connection has the database open, and changes nothing', () => {
    const file = oldDatabase();
    const before = rowsOf(file, OLD);
    const other = openConnection(file, {});
    other.exec('SELECT count(*) FROM letters');
    expect(() => rebuildDatabase(IDENTITY, { file, keepAs: null, busyTimeoutMs: 10 })).toThrow(/locked/);
    other.close();
    removeLeftovers(file);
    expect(rowsOf(file, OLD)).toBe(before);
    expect(readdirSync(dirname(file))).toEqual([basename(file)]);
  });

  it.each<[string, Partial<Rebuild>, RegExp]>([
    ['a table would be lost', { dropped: [] }, /table removed would be lost/],
    [
      'a column would be lost',
      { tables: CHANGED.tables.replace('body TEXT,', '') },
      /column body of table letters would be lost|no column body/,
    ],
    [
      'rows are missing',
      {
        copies: () => ({
          letters: {
            columns: { owner: '1', kind: '1' },
            join: "JOIN main.owners AS a ON a.owner = o.owner AND a.owner = 'a'",
          },
          tries: { columns: { reports: 'report' }, dropped: ['n', 'report'], where: 'o.n = 1' },
        }),
      },
      /letters has 320 rows instead of 960/,
    ],
    [
      'a reference is broken',
      {
        copies: () => ({
          letters: { columns: { owner: '99', kind: '1' } },
          tries: { columns: { reports: 'report' }, dropped: ['n', 'report'], where: 'o.n = 1' },
        }),
      },
      /960 rows of the new database refer to rows that do not exist/,
    ],
  ])('throws and does not change the old database when %s', (_, changes, message) => {
    const file = oldDatabase();
    const before = rowsOf(file, OLD);
    expect(() => rebuild(file, { ...CHANGED, ...changes })).toThrow(message);
    expect(rowsOf(file, OLD)).toBe(before);
    expect(existsSync(`${file}.before-3-1`)).toBe(false);
  });

  it('continues after a kill between the renames of a file system without hard links', () => {
    const file = oldDatabase();
    rebuild(file, CHANGED);
    const rows = rowsOf(file, NEW);
    renameSync(file, `${file}.new`);
    removeLeftovers(file);
    expect(rowsOf(file, NEW)).toBe(rows);
    expect(readdirSync(dirname(file)).sort()).toEqual(['postrider.db', 'postrider.db.before-3-1']);
  });

  it('continues there when opening the missing database has created an empty file', () => {
    const file = oldDatabase();
    rebuild(file, CHANGED);
    const rows = rowsOf(file, NEW);
    renameSync(file, `${file}.new`);
    writeFileSync(file, '');
    removeLeftovers(file);
    expect(rowsOf(file, NEW)).toBe(rows);
    expect(readdirSync(dirname(file)).sort()).toEqual(['postrider.db', 'postrider.db.before-3-1']);
  });

  it.runIf(process.getuid?.() === 0)('gives the new file to the owner of the old one', () => {
    const file = oldDatabase();
    chownSync(file, 12_345, 12_346);
    rebuild(file, CHANGED);
    expect(statSync(file)).toMatchObject({ uid: 12_345, gid: 12_346 });
  });

  it('does not use an incomplete file as the database', () => {
    const file = oldDatabase();
    renameSync(file, `${file}.elsewhere`);
    writeFileSync(`${file}.new`, Buffer.alloc(4096));
    removeLeftovers(file);
    expect(readdirSync(dirname(file))).toEqual(['postrider.db.elsewhere']);
  });

  it('does not count a second link to the database as a copy', () => {
    const file = oldDatabase();
    linkSync(file, `${file}.before-3-1`);
    expect(removeLeftovers(file)).toEqual([`${file}.before-3-1`]);
    expect(existsSync(file)).toBe(true);
  });
});

describe('a migration with a rebuild', () => {
  const PROCESS = fileURLToPath(new URL('rebuild-process.ts', import.meta.url));
  const TSX = import.meta.resolve('tsx');

  /** Copies all files of a database as they are, with their links to each other; returns the database. */
  function stateOf(file: string): string {
    const copy = join(temporaryDir(), 'state');
    execFileSync('cp', ['-a', dirname(file), copy]);
    return join(copy, basename(file));
  }

  async function killedAt(file: string, kind: string, report: number): Promise<NodeJS.Signals | null> {
    const child = spawn(process.execPath, ['--import', TSX, PROCESS, file, kind, String(report)], {
      stdio: 'inherit',
    });
    const [, signal] = await once(child, 'exit');
    return signal;
  }

  it('creates the same schema in a new database', () => {
    const file = oldDatabase();
    const created = join(temporaryDir(), 'postrider.db');
    const migrations = migrationsWith(CHANGED);
    migrateDatabase({ file, migrations });
    migrateDatabase({ file: created, migrations });
    expect(schemaOf(created)).toBe(schemaOf(file));
    expect(read(created, 'PRAGMA auto_vacuum')).toEqual([[2]]);
  });

  it.each([
    { kind: 'rebuild', tables: NEW, points: 12 },
    { kind: 'in place', tables: OLD, points: 3 },
  ])('is complete exactly once after a kill at any step ($kind)', async ({ kind, tables, points }) => {
    const expected = oldDatabase();
    const old = rowsOf(expected, OLD);
    const reports: string[] = [];
    const states: string[] = [];
    migrateDatabase({
      file: expected,
      migrations: migrationsFor(kind),
      chunkRows: 100,
      onProgress: ({ step, item, done }) => {
        reports.push(`${step} ${item} ${done}`);
        states.push(stateOf(expected));
      },
    });
    const rows = rowsOf(expected, tables);
    const expectComplete = (file: string, label: string) => {
      const result = migrateDatabase({ file, migrations: migrationsFor(kind) });
      expect(rowsOf(file, tables), label).toBe(rows);
      expect(schemaOf(file), label).toBe(schemaOf(expected));
      expect(read(file, 'PRAGMA integrity_check'), label).toEqual([['ok']]);
      const files = readdirSync(dirname(file)).sort();
      expect(files, label).toEqual(['postrider.db', expect.stringMatching(/^postrider\.db\.before-4-\d+$/)]);
      expect(rowsOf(join(dirname(file), files[1] ?? ''), OLD), label).toBe(old);
      if (result.copy !== null) expect(basename(result.copy), label).toBe(files[1]);
    };
    // The first and the last report of each step, and one between.
    const chosen = new Set<number>();
    for (const step of new Set(reports.map((report) => report.split(' ')[0]))) {
      const of = reports.flatMap((report, at) => (report.startsWith(`${step} `) ? [at] : []));
      for (const at of [of[0], of[of.length >> 1], of.at(-1)]) if (at !== undefined) chosen.add(at);
    }
    expect(chosen.size).toBeGreaterThanOrEqual(points);
    for (const at of chosen) expectComplete(states[at] ?? '', `as at ${reports[at]}`);
    // The copied states simulate killed processes; this process is killed.
    const file = oldDatabase();
    const at = reports.length >> 1;
    expect(await killedAt(file, kind, at + 1)).toBe('SIGKILL');
    expectComplete(file, `killed at ${reports[at]}`);
  });
});
